// SPDX-License-Identifier: MIT
/// \file
/// The style sheet of the reports, except for the colours of lines: those are up to each program.
#pragma once

#include <string_view>

namespace examples {

inline constexpr std::string_view style_sheet = R"(
:root { color-scheme: light dark; --text: #1d2329; --dim: #5c6670; --back: #ffffff; --rule: #d9dee3;
  --grid: #e6eaee; --band-zero: #d1495b33; --band-subnormal: #e0a30b33; --band-normal: #2a9d6f22;
  --band-overflow: #d1495b22; --bar: #4d7ea8; --outline: #b3541e; --cross: #c8283c; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ec; --dim: #9aa5b0; --back: #15191d;
  --rule: #353d45; --grid: #272e35; --band-zero: #d1495b3d; --band-subnormal: #e0a30b2e;
  --band-normal: #2a9d6f26; --band-overflow: #d1495b2e; --bar: #6f9fc8; --outline: #f0a06a;
  --cross: #ff6b7a; } }
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
@media (max-width: 640px) { main { padding: 16px 12px 32px; } }
.band-name { font-size: 12px; font-weight: 600; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .area { stroke: none; opacity: .11; }
.bar { fill: var(--bar); stroke: var(--back); } .outline { fill: none; stroke: var(--outline); stroke-width: 2; }
.cross { stroke: var(--cross); stroke-width: 2; fill: none; }
.band.zero { fill: var(--band-zero); } .band.subnormal { fill: var(--band-subnormal); }
.band.normal { fill: var(--band-normal); } .band.overflow { fill: var(--band-overflow); }
)";

}  // namespace examples
