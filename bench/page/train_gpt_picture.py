#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/train_gpt.svg from a report of train_gpt:

    train_gpt --layers 2 --width 64 --heads 2 --context 64 --batch 8 --learning-rate 0.004 --steps 400 \\
        --recipe fp32,bf16,fp16,fp16_alone,fp8 --report gpt.html
    bench/page/train_gpt_picture.py gpt.html docs/train_gpt.svg
"""
import re
import sys

# One panel below the other, so that its text can be read on a telephone.
WIDTH, HEIGHT, LEFT, TOP, BETWEEN, STEPS = 340, 190, 46, 34, 62, 400
COLOURS = {"fp32": "#767676", "bf16": "#2a6fb0", "fp16": "#2a9d6f", "fp16_alone": "#c8283c", "fp8": "#8a4fb8"}
NAMES = {"fp32": "float", "bf16": "bfloat16", "fp16": "half, scaled", "fp16_alone": "half alone", "fp8": "8-bit products"}


def lines_of(figure, value_of):
    """The lines of a chart of the page, which is 1000 wide and 300 high, in steps and values."""
    found = re.findall(r'<path class="line ([a-z0-9_]+)" d="M([^"]{100,})"', figure)
    return [(name, [(float(p.split()[0]) * STEPS / 1000, value_of(float(p.split()[1]))) for p in d.split("L")])
            for name, d in found]


def range_of(figure):
    """The values at the bottom and at the top of a chart."""
    ticks = re.findall(r'x="-8" y="([0-9.]+)%"[^>]*>(-?[0-9.]+)<', figure)
    at = {float(y): float(value) for y, value in ticks}
    return at[100.0], at[0.0]


def mean_of_ten(line):
    values = [v for _, v in line]
    return [(x, sum(values[max(0, i - 9):i + 1]) / len(values[max(0, i - 9):i + 1])) for i, (x, _) in enumerate(line)]


def panel(y0, title, lines, low, high, ticks, width_of):
    out = [f'<g transform="translate({LEFT},{y0})"><text class="title" x="0" y="-14">{title}</text>']
    y_of = lambda v: HEIGHT - (min(max(v, low), high) - low) / (high - low) * HEIGHT
    for t in ticks:
        out.append(f'<line class="grid" x1="0" x2="{WIDTH}" y1="{y_of(t):.1f}" y2="{y_of(t):.1f}"/>'
                   f'<text x="-6" y="{y_of(t) + 4:.1f}" text-anchor="end">{t:g}</text>')
    for step in range(0, STEPS + 1, STEPS // 4):
        out.append(f'<text x="{step / STEPS * WIDTH:.0f}" y="{HEIGHT + 16}" text-anchor="middle">{step}</text>')
    for name, line in lines:
        d = "M" + "L".join(f"{x / STEPS * WIDTH:.1f} {y_of(v):.1f}" for x, v in line)
        out.append(f'<path d="{d}" stroke="{COLOURS[name]}" stroke-width="{width_of(name)}"/>')
    return out + ["</g>"]


def main():
    page = open(sys.argv[1]).read()
    figures = {re.search("<h3>(.*?)</h3>", f).group(1): f for f in re.findall("<figure>(.*?)</figure>", page, re.S)}

    def chart(title):
        low, high = range_of(figures[title])
        return low, high, lines_of(figures[title], lambda y: high - y / 300 * (high - low))

    low, high, losses = chart("Loss")
    out = panel(TOP, "loss, bits a character, by step", losses, low, high, range(int(low), int(high) + 1),
                lambda name: 5 if name == "fp32" else 1.6)
    differences = [(name, mean_of_ten(line)) for name, line in chart("Difference from float")[2]]
    most = max(abs(v) for _, line in differences for _, v in line)
    most = next(limit for limit in (30, 60, 100, 200, 500, 1000) if limit >= most)
    out += panel(TOP + HEIGHT + BETWEEN, "the same less float's, thousandths of a bit", differences, -most, most,
                 [-most, -most / 2, 0, most / 2, most], lambda name: 1.6)
    x, y = LEFT, TOP + 2 * HEIGHT + BETWEEN + 38
    for name in COLOURS:
        if x + 28 + 7 * len(NAMES[name]) > LEFT + WIDTH:
            x, y = LEFT, y + 20
        out.append(f'<g transform="translate({x},{y})"><line x1="0" x2="22" y1="0" y2="0" '
                   f'stroke="{COLOURS[name]}" stroke-width="3"/><text x="28" y="4">{NAMES[name]}</text></g>')
        x += 50 + 7 * len(NAMES[name])
    width, height = LEFT + WIDTH + 16, y + 14
    with open(sys.argv[2], "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                   f'viewBox="0 0 {width} {height}" role="img" aria-label="Losses of a GPT in several precisions">\n'
                   "<style>text { font: 13px system-ui, sans-serif; fill: #5c6670; } "
                   ".title { font-weight: 600; fill: #1d2329; } .grid { stroke: #d9dee3; } "
                   "path { fill: none; stroke-linejoin: round; }\n"
                   "@media (prefers-color-scheme: dark) { text { fill: #9aa5b0; } .title { fill: #e4e8ec; } "
                   ".grid { stroke: #353d45; } }</style>\n" + "\n".join(out) + "\n</svg>\n")


if __name__ == "__main__":
    main()
