// SPDX-License-Identifier: MIT
/// \file
/// What contenders look like, on a light and on a dark background.
#pragma once

#include <string>
#include <string_view>

#include "records.hpp"

namespace bench::page {

/// The class of a contender's colour.
inline std::string_view style_of(const record& it) {
    struct known {
        std::string_view name;
        std::string_view style;
    };
    constexpr known styles[] = {
        {"oneDNN", "orange"},   {"oneDNN packed B", "red"}, {"OpenBLAS", "green"},  {"Eigen", "purple"},
        {"Highway", "teal"},    {"FP16", "brown"},          {"_Float16", "slate"},  {"loop", "orange"},
        {"two loops", "brown"}, {"pass by pass", "red"},    {"cuBLASLt", "orange"}, {"cuBLASLt fast", "red"}};
    if (it.role == "mp") return it.contender == "mp packed B" ? "mp packed" : "mp";
    if (it.role == "reference") return "reference";
    for (const known& style : styles) {
        if (style.name == it.contender) return style.style;
    }
    return "slate";
}

inline constexpr std::string_view style_sheet = R"(
:root { --mp: #1b63d6; --orange: #d2720c; --red: #b83232; --green: #2b8a53; --purple: #7d51cf; --teal: #0e8a93;
  --brown: #8a6447; --slate: #66788a; --reference: #b4bec8; --track: #f0f3f6; --card: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --mp: #62a0ff; --orange: #f0a04b; --red: #ef7b7b;
  --green: #5cc68a; --purple: #b496f5; --teal: #4cc4cd; --brown: #c49a78; --slate: #9fb0c0; --reference: #566370;
  --track: #20262c; --card: #1c2228; } }
.mp { --c: var(--mp); } .orange { --c: var(--orange); } .red { --c: var(--red); } .green { --c: var(--green); }
.purple { --c: var(--purple); } .teal { --c: var(--teal); } .brown { --c: var(--brown); }
.slate { --c: var(--slate); } .reference { --c: var(--reference); }
h3 { font-size: 15px; margin: 22px 0 6px; } h3 small { font-weight: 400; color: var(--dim); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 16px 0; }
.card { background: var(--card); border-radius: 8px; padding: 10px 14px; }
.card b { display: block; font-size: 21px; font-weight: 650; line-height: 1.25; }
.card b small { font-size: 13px; font-weight: 400; } .card span { color: var(--dim); font-size: 12.5px; }
input.build { position: absolute; opacity: 0; }
label.build { display: inline-block; padding: 5px 16px; margin: 10px 0 0; border: 1px solid var(--grid);
  cursor: pointer; font-size: 14px; } label.build:first-of-type { border-radius: 7px 0 0 7px; border-right: 0; }
label.build:last-of-type { border-radius: 0 7px 7px 0; }
input.build:focus-visible + label.build { outline: 2px solid var(--mp); outline-offset: 2px; }
input.build:checked + label.build { background: var(--mp); border-color: var(--mp); color: var(--back); }
#generic:checked ~ section:not(.generic), #native:checked ~ section:not(.native),
#avx2:checked ~ section:not(.avx2) { display: none; }
.swatch { width: 11px; height: 11px; border-radius: 3px; background: var(--c); }
.mark { fill: var(--c); stroke: var(--back); stroke-width: 1; } .mark:hover { stroke: var(--text); }
.roof { stroke: var(--text); fill: none; stroke-width: 1.6; opacity: .75; }
.slope { stroke: var(--dim); fill: none; stroke-width: 1.3; } .s0 { stroke-dasharray: 2 3; }
.s1 { stroke-dasharray: 6 4; } .s2 { stroke-dasharray: 14 4; } .s3 { stroke-dasharray: 10 3 2 3; }
svg text.roof-name { fill: var(--text); font-size: 11.5px; paint-order: stroke; stroke: var(--back);
  stroke-width: 3px; } svg text.shape { font-size: 11px; }
.guide { stroke: var(--grid); stroke-dasharray: 2 3; }
.one { stroke: var(--text); stroke-width: 1.2; } svg text.name { fill: var(--text); }
.faster { fill: var(--mp); fill-opacity: .82; } .slower { fill: var(--orange); fill-opacity: .82; }
.lead { fill: var(--mp); fill-opacity: .06; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(270px, 1fr)); gap: 6px 34px; }
.panel h4 { font-size: 12.5px; margin: 4px 0; color: var(--dim); font-weight: 600; }
.bar { display: grid; grid-template-columns: 92px 1fr 48px; align-items: center; gap: 8px; font-size: 12.5px;
  line-height: 1.3; margin: 1px 0; } .bar span:last-child { font-variant-numeric: tabular-nums; }
.bar span:first-child { text-align: right; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.bar.own { font-weight: 650; } .track { background: var(--track); border-radius: 3px; height: 13px;
  border-right: 2px solid var(--dim); }
td.behind { border-left: 3px solid var(--orange); }
.fill { background: var(--c); height: 13px; border-radius: 3px; min-width: 2px; }
details { margin: 6px 0; } summary { cursor: pointer; font-size: 14px; }
td small { color: var(--dim); font-size: 11.5px; }
)";

}  // namespace bench::page
