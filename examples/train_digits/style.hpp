// SPDX-License-Identifier: MIT
/// \file
/// The style sheet of the report. The colours of the recipes are told apart by people with any kind of colour
/// vision together with the dashes, and each stands out from a light and a dark background.
#pragma once

#include <string_view>

namespace train_digits {

inline constexpr std::string_view style_sheet = R"(
:root { color-scheme: light dark; --text: #1d2329; --dim: #5c6670; --back: #ffffff; --rule: #d9dee3;
  --grid: #e6eaee; --band-zero: #d1495b33; --band-subnormal: #e0a30b33; --band-normal: #2a9d6f22;
  --band-overflow: #d1495b22; --bar: #4d7ea8; --outline: #b3541e;
  --fp32: #9aa3ab; --fp16: #c8283c; --fp16-master: #d97a00; --fp16-static: #1f77b4; --fp16-dynamic: #0b8a5f;
  --bf16-master: #7b4fc9; --bf16: #c2459c; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ec; --dim: #9aa5b0; --back: #15191d;
  --rule: #353d45; --grid: #272e35; --band-zero: #d1495b3d; --band-subnormal: #e0a30b2e;
  --band-normal: #2a9d6f26; --band-overflow: #d1495b2e; --bar: #6f9fc8; --outline: #f0a06a;
  --fp32: #808b95; --fp16: #ff6b7a; --fp16-master: #ffab40; --fp16-static: #5fb0ee; --fp16-dynamic: #3fcf9a;
  --bf16-master: #b394f5; --bf16: #f08bd0; } }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 20px 48px; }
h1 { font-size: 26px; margin: 8px 0; } h2 { font-size: 19px; margin: 40px 0 12px; }
h3 { font-size: 15px; margin: 0 0 4px; }
section { border-top: 1px solid var(--rule); margin-top: 32px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; width: 100%; } td { white-space: nowrap; }
th { color: var(--dim); font-weight: 600; vertical-align: bottom; white-space: normal; }
th, td { padding: 4px 8px; text-align: right; border-bottom: 1px solid var(--grid);
  font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
sup { line-height: 0; font-size: .75em; } .findings li { margin: 4px 0; } .notes, footer, figcaption { color: var(--dim); font-size: 13px; }
figure { margin: 32px 0; } figcaption { margin-top: 2px; }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--dim); } .exponent { font-size: 9px; } .axis { font-size: 13px; }
.band-name { font-size: 12px; font-weight: 600; }
.grid { stroke: var(--grid); } .minor { opacity: .55; } .frame { stroke: var(--dim); fill: none; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 4px 0 8px; font-size: 13px; }
.legend span { display: flex; align-items: center; gap: 6px; } .legend svg { width: 34px; height: 10px; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .area { stroke: none; opacity: .11; }
.line.fp32 { stroke: var(--fp32); stroke-width: 5; } .area.fp32 { fill: var(--fp32); }
.line.fp16 { stroke: var(--fp16); } .area.fp16 { fill: var(--fp16); }
.line.fp16-master { stroke: var(--fp16-master); stroke-dasharray: 8 3; }
.area.fp16-master { fill: var(--fp16-master); }
.line.fp16-static { stroke: var(--fp16-static); } .area.fp16-static { fill: var(--fp16-static); }
.line.fp16-dynamic { stroke: var(--fp16-dynamic); stroke-dasharray: 5 3; }
.area.fp16-dynamic { fill: var(--fp16-dynamic); }
.line.bf16-master { stroke: var(--bf16-master); stroke-dasharray: 2 3; }
.area.bf16-master { fill: var(--bf16-master); }
.line.bf16 { stroke: var(--bf16); stroke-dasharray: 9 3 2 3; } .area.bf16 { fill: var(--bf16); }
.bar { fill: var(--bar); } .outline { fill: none; stroke: var(--outline); stroke-width: 2; }
.cross { stroke: var(--fp16); stroke-width: 2; fill: none; }
.band.zero { fill: var(--band-zero); } .band.subnormal { fill: var(--band-subnormal); }
.band.normal { fill: var(--band-normal); } .band.overflow { fill: var(--band-overflow); }
.hover { fill: transparent; } .hover:hover { fill: var(--text); fill-opacity: .25; }
)";

}  // namespace train_digits
