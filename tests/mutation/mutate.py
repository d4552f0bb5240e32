#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks include/mp/numbers/format in one place at a time and looks whether the tests notice.

    python3 tests/coverage/coverage.py measure numbers/format          # which test reaches which line, and what it costs
    python3 tests/mutation/mutate.py list                      # the places, by header
    python3 tests/mutation/mutate.py run --count 400           # goes on where it was ended
    python3 tests/mutation/mutate.py run --again survived --most-judges 99
    python3 tests/mutation/mutate.py table                     # results by header and by kind, and what survived

A mutant is a header with one operator, comparison, constant, condition or statement changed, in a folder of its own
in front of the include path. Its judges are the sources of tests/numbers/format that reach the changed line: each is
compiled with the mutant and run, cheap and deadly ones first, until one fails. Results, one a line:

    killed     a test failed, or ended by a signal
    timed out  a test did not end; counted as noticed
    refused    did not compile (static assertions are tests as well); not counted
    survived   all judges passed

Which mutants are drawn depends on the sources, the count and the seed alone. What only the preprocessor's other
branches have (devices, F16C) is left out, as are declarations, static assertions and tables of digits.
"""
import argparse
import glob
import json
import os
import random
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUTPUT = os.path.join(ROOT, "build", "mutation")
FORMAT = os.path.join(ROOT, "include", "mp", "numbers", "format")
COVERAGE = os.path.join(ROOT, "build", "coverage", "numbers", "format")
RESULTS = os.path.join(OUTPUT, "results.jsonl")
# For devices; lists of includes; digits of constants; host tests of these are in tests/device/cuda/host.
SKIPPED = {"device.hpp", "device_conversions.hpp", "operations.hpp",
           "conversion_repairs.hpp", "math/two_over_pi.hpp", "named_formats.hpp"}

# Who should know, where reaching a line says little: the first that fits. Their judges come third and later, behind
# the two that cost least.
SPECIALISTS = [
    (r"math/fast|float_arithmetic|hardware", ["fast_math_directions", "math_fast_path", "arithmetic_16bit", "functions",
                                              "mpfr/math_functions_16bit"]),
    (r"math/", ["mpfr/math_functions", "mpfr/math_functions_16bit", "math_fast_path", "mpfr/wide_formats"]),
    (r"text[.]hpp", ["literals", "text_formats", *(f"compile_fail/literal_{name}" for name in (
        "binary", "octal", "too_large", "too_small", "without_infinity", "zero_of_scale"))]),
    (r"digits|decimal|parsing|printing", ["text_formats", "text_printing", "text_reading", "text_precision",
                                          "wide_formats"]),
    (r"environment|ordering", ["environment", "comparison"]),
    (r"limits|descriptor", ["limits", "own_formats", "wide_formats"]),
    (r"binary_conversion|host_floats|convert_scalar|codes", ["conversions", "mixed_operands", "nan_policies",
                                                             "conversion_pairs"]),
    (r"mixed_oper", ["mixed_operands"]),
    (r"exact", ["arithmetic_8bit", "environment", "stochastic"]),
]

# The layout of the sources tells binary operators, which stand between spaces, from templates and references.
BINARY = {"+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["/"], "<<": [">>"], ">>": ["<<"], "&": ["|"],
          "|": ["&"], "^": ["|"], "&&": ["||"], "||": ["&&"], "==": ["!="], "!=": ["=="], "<": ["<=", ">="],
          "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "+=": ["-="], "-=": ["+="], "*=": ["+="],
          "/=": ["*="], "<<=": [">>="], ">>=": ["<<="], "|=": ["&="], "&=": ["|="], "^=": ["|="]}
KIND = {**{op: "arithmetic" for op in ("+", "-", "*", "/", "%", "+=", "-=", "*=", "/=")},
        **{op: "bits and shifts" for op in ("<<", ">>", "&", "|", "^", "<<=", ">>=", "|=", "&=", "^=")},
        **{op: "comparison" for op in ("==", "!=", "<", "<=", ">", ">=")},
        **{op: "logic" for op in ("&&", "||")}}


def blanked(text):
    """The text with comments, strings and directives as spaces, so that places stay where they are."""
    pattern = r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ ]*\#(?:\\\n|[^\n])*"
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S | re.M)


def active_lines(header):
    """The lines that the preprocessor leaves for this compiler and its default target."""
    path = os.path.join(FORMAT, header)
    text = subprocess.run(["g++", "-std=c++20", "-E", "-I" + os.path.join(ROOT, "include"), path],
                          capture_output=True, check=True, text=True).stdout
    lines, here, number = set(), False, 0
    for line in text.splitlines():
        marker = re.match(r'# (\d+) "(.*)"', line)
        if marker:
            number, here = int(marker[1]), marker[2] == path
        else:
            if here and line.strip():
                lines.add(number)
            number += 1
    return lines


def statement_around(code, place):
    start = max(code.rfind(c, 0, place) for c in ";{}") + 1
    ends = [e for e in (code.find(c, place) for c in ";{") if e >= 0]
    return code[start:min(ends, default=len(code))]


def closing(code, place):
    """Behind the parenthesis that closes the one at `place`."""
    depth = 0
    for i in range(place, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    return -1


def mutants_of(header):
    """All of a header: (start, end, replacement, kind)."""
    with open(os.path.join(FORMAT, header)) as file:
        text = file.read()
    code = blanked(text)
    found = []
    for m in re.finditer(r"(?<= )(<<=|>>=|[-+*/|&^]=|<<|>>|&&|\|\||[=!<>]=|[-+*/%&|^<>])(?=[ \n])", code):
        for other in BINARY[m[1]]:
            found.append((m.start(1), m.end(1), other, KIND[m[1]]))
    for m in re.finditer(r"(?<![\w.])(0x[0-9a-fA-F]+|\d+)(?=[uUlL]*\b)(?![\w.]*[.])", code):
        number = int(m[1], 0) if not re.fullmatch(r"0\d+", m[1]) else None
        if number is not None:
            found.append((m.start(1), m.end(1), str(number + 1), "constant"))
            if number > 0:
                found.append((m.start(1), m.end(1), str(number - 1), "constant"))
    for m in re.finditer(r"\b(true|false)\b", code):
        found.append((m.start(), m.end(), "false" if m[1] == "true" else "true", "constant"))
    for m in re.finditer(r"\b(if|while) (?=\()", code):
        end = closing(code, m.end())
        found.append((m.end(), end, f"(!{text[m.end():end]})", "condition"))
    for m in re.finditer(r"(?<=[ (])!(?=[\w(])", code):
        found.append((m.start(), m.end(), "", "condition"))
    for m in re.finditer(r"\+\+|--", code):
        found.append((m.start(), m.end(), "--" if m[0] == "++" else "++", "arithmetic"))
    # Statements of one line: assignments, calls, and returns and others behind a condition.
    for m in re.finditer(r"^ +((?:if \(.*\) |else )?[\w:.>\[\]*+-]+(?:<[\w:, ]*>)?(?: [-+*/%&|^<>]*= |\().*;)$", code, re.M):
        if not re.match(r"(return|static_assert|using|template|friend|throw)\b", m[1]):
            found.append((m.start(1), m.end(1), ";", "statement"))
    for m in re.finditer(r"^ +(if \(.*\) (?:return|continue|break|\+\+|--)\b.*;)$", code, re.M):
        found.append((m.start(1), m.end(1), ";", "statement"))
    active = active_lines(header)
    for start, end, replacement, kind in sorted(set(found)):
        line = text.count("\n", 0, start) + 1
        around = statement_around(code, start)
        if line not in active or re.search(r"\b(static_assert|template|requires|concept|using|MP_ISA|operator)\b|=\s*(delete|default)|\[\[",
                                           around):
            continue
        if kind != "statement" and re.search(r"if constexpr", around):
            continue
        yield {"header": header, "line": line, "start": start, "end": end, "old": text[start:end],
               "new": replacement, "kind": kind}


def headers():
    found = sorted(glob.glob("**/*.hpp", root_dir=FORMAT, recursive=True))
    return [h for h in found if h not in SKIPPED]


def drawn(count, seed, only):
    """`count` mutants: three of every header if it has them, the others by the number of its places."""
    chance = random.Random(seed)
    first, others = [], []
    for header in headers():
        places = {}
        for m in mutants_of(header):
            places.setdefault((m["start"], m["end"]), []).append(m)
        one_each = [chance.choice(all_here) for _, all_here in sorted(places.items())]
        chance.shuffle(one_each)
        first += one_each[:3]
        others += one_each[3:]
    chance.shuffle(first)
    chance.shuffle(others)
    return [m for m in (first + others)[:count] if not only or m["header"] in only]


def name_of(m):
    return f"{m['header']}:{m['start']}:{m['end']}:{m['new']}"


class judges:
    """The sources of tests/numbers/format, by what they reach and by what they cost."""

    def __init__(self):
        self.reached, self.cost, self.limit, self.tried = {}, {}, {}, {}
        self.refresh()

    def refresh(self):
        for path in glob.glob(os.path.join(COVERAGE, "**", "*.json"), recursive=True):
            name = os.path.relpath(path, COVERAGE)[:-5]
            if name in self.cost:
                continue
            with open(path) as file:
                summary = json.load(file)
            if summary["result"] != "passed":
                continue
            self.cost[name] = summary["compile_seconds"] + summary["run_seconds"]
            # What the run may take at -O0 and beside other work.
            self.limit[name] = 20 + 4 * summary["run_seconds"]
            for header, found in summary["headers"].items():
                lines = self.reached.setdefault(header.removeprefix("numbers/format/"), {})
                for line, hit in found["lines"].items():
                    names = lines.setdefault(int(line), set())
                    if hit:
                        names.add(name)

    def learn(self, header, name, killed):
        kills, tries = self.tried.get((header, name), (0, 0))
        self.tried[header, name] = (kills + killed, tries + 1)

    def of(self, m):
        """In the order of cost over chance to kill. A statement's later lines count as its first."""
        lines = self.reached.get(m["header"], {})
        line = next((n for n in range(m["line"], m["line"] - 9, -1) if lines.get(n)), None)
        names = lines[line] if line else set().union(*lines.values()) if lines else set()

        def price(name):
            kills, tries = self.tried.get((m["header"], name), (0, 0))
            return self.cost[name] * (tries + 2) / (kills + 1)
        names = sorted(names, key=price)
        special = next((s for pattern, s in SPECIALISTS if re.search(pattern, m["header"])), [])
        special = [s for s in special if s in self.cost or s.startswith("compile_fail/")]
        return list(dict.fromkeys([*names[:2], *special, *names])), line == m["line"]


def judge(m, name, flags, limit):
    overlay = os.path.join(OUTPUT, f"overlay-{os.getpid()}")
    copy = os.path.join(overlay, "mp", "numbers", "format", m["header"])
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    with open(os.path.join(FORMAT, m["header"])) as file:
        text = file.read()
    with open(copy, "w") as file:
        file.write(text[:m["start"]] + m["new"] + text[m["end"]:])
    compiler = ["nice", "-n", "5", "g++", "-std=c++20", *flags.split(), "-w", f"-I{overlay}", "-Iinclude",
                "-Itests", f'-DMP_SOURCE_DIR="{ROOT}"']
    main = os.path.join(OUTPUT, "main.o")
    program = os.path.join(overlay, "judge")
    try:
        if not os.path.exists(main):
            subprocess.run([*compiler, "-c", "tests/main.cpp", "-o", main], cwd=ROOT, check=True)
        if os.path.exists(program):
            os.remove(program)
        libraries = ["-lmpfr", "-lgmp"] if name.startswith("mpfr/") else ["-pthread"]
        if name.startswith("compile_fail/"):
            built = subprocess.run([*compiler, "-fsyntax-only", f"tests/numbers/format/{name}.cpp"], cwd=ROOT,
                                   capture_output=True)
            return ("killed", "compiles") if built.returncode == 0 else ("survived", "")
        built = subprocess.run([*compiler, f"tests/numbers/format/{name}.cpp", main, "-o", program, *libraries], cwd=ROOT,
                               capture_output=True, text=True, timeout=120)
        if built.returncode != 0:
            error = re.search(r"error: (.*)", built.stderr)
            return "refused", error[1] if error else built.stderr[-200:]
        tested = subprocess.run(["nice", "-n", "5", program, "--abort-after=1", "--no-version"], cwd=ROOT,
                                capture_output=True, text=True, errors="replace", timeout=limit)
        if tested.returncode == 0:
            return "survived", ""
        case = re.search(r"TEST CASE: +(.*)", tested.stdout)
        return "killed", case[1].strip() if case else f"signal {-tested.returncode}"
    except subprocess.TimeoutExpired:
        return "timed out", ""
    finally:
        os.remove(copy)


def results():
    found = {}
    if os.path.exists(RESULTS):
        with open(RESULTS) as file:
            for line in file:
                result = json.loads(line)
                found[name_of(result)] = result
    return found


def run(options):
    os.makedirs(OUTPUT, exist_ok=True)
    known = judges()
    if not known.cost:
        sys.exit("first: python3 tests/coverage/coverage.py measure numbers/format")
    before = results()
    for result in before.values():
        for name in result["judges"]:
            known.learn(result["header"], name, name == result.get("by"))
    todo = drawn(options.count, options.seed, options.header)
    if options.cheap_first:
        todo.sort(key=lambda m: min([known.cost.get(name, 0) for name in known.of(m)[0]], default=0))
    done = 0
    for m in todo:
        old = before.get(name_of(m))
        if old and old["verdict"] not in options.again:
            continue
        if options.place and f"{m['header']}:{m['line']}" not in options.place:
            continue
        known.refresh()
        start = time.monotonic()
        names, exact = known.of(m)
        if not names and not options.judge:
            print(f"{m['header']}: no test that was measured reaches it")
            continue
        m["judges"], m["reached"] = list(old["judges"]) if old else [], exact
        m["verdict"], m["detail"] = "survived", ""
        for name in options.judge or [n for n in names if n not in m["judges"]][:options.most_judges]:
            if options.budget and time.monotonic() - start > options.budget:
                break
            m["verdict"], m["detail"] = judge(m, name, options.flags, known.limit.get(name, 60))
            if m["verdict"] == "refused":
                break
            m["judges"].append(name)
            known.learn(m["header"], name, m["verdict"] != "survived")
            if m["verdict"] != "survived":
                m["by"] = name
                break
        m["seconds"] = round(time.monotonic() - start, 1)
        with open(RESULTS, "a") as file:
            file.write(json.dumps(m) + "\n")
        done += 1
        print(f"{m['header']}:{m['line']} {m['old'][:40]!r} -> {m['new'][:40]!r}: {m['verdict']} "
              f"{m.get('by', '')} {m['seconds']} s", flush=True)
        if options.minutes and time.monotonic() - options.began > 60 * options.minutes:
            break
    print(f"{done} mutants judged")


def print_table():
    everything = results().values()
    verdicts = ["killed", "timed out", "survived", "refused"]
    for what in ("header", "kind"):
        print(f"| {what} | " + " | ".join(verdicts) + " |\n|---|" + "---:|" * len(verdicts))
        groups = sorted({r[what] for r in everything})
        for group in [*groups, None]:
            counts = [sum(r["verdict"] == v and group in (None, r[what]) for r in everything) for v in verdicts]
            print(f"| {group or 'all'} | " + " | ".join(map(str, counts)) + " |")
        print()
    for r in sorted(everything, key=lambda r: (r["header"], r["line"])):
        if r["verdict"] == "survived":
            print(f"{r['header']}:{r['line']} {r['old']!r} -> {r['new']!r} "
                  f"[{', '.join(r['judges']) or 'no test reaches it'}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="how many places the headers have")
    one = commands.add_parser("run", help="draw mutants and judge them")
    one.add_argument("--count", type=int, default=400)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--header", nargs="*", default=[], help="only mutants of these headers")
    one.add_argument("--place", nargs="*", default=[], help="only mutants at <header>:<line>")
    one.add_argument("--judge", nargs="*", default=[], help="these sources of tests/numbers/format, instead of those that reach the line")
    one.add_argument("--again", nargs="*", default=[], metavar="VERDICT", help="go on with mutants of this verdict")
    one.add_argument("--most-judges", type=int, default=4, help="sources that a mutant is tried with")
    one.add_argument("--cheap-first", action="store_true", help="mutants in the order of what their cheapest judge costs")
    one.add_argument("--budget", type=float, default=0, help="seconds after which no further judge is asked")
    one.add_argument("--flags", default="-O0")
    one.add_argument("--minutes", type=float, default=0, help="end after this time")
    commands.add_parser("table", help="the results")
    options = parser.parse_args()
    options.began = time.monotonic()
    if options.command == "list":
        for header in headers():
            print(f"{header}: {len(list(mutants_of(header)))}")
    elif options.command == "run":
        run(options)
    else:
        print_table()


if __name__ == "__main__":
    main()
