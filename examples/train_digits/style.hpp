// SPDX-License-Identifier: MIT
/// \file
/// The lines of the recipes in the report. Their colours are told apart by people with any kind of colour
/// vision together with the dashes, and each stands out from a light and a dark background.
#pragma once

#include <string_view>

namespace examples::train_digits {

inline constexpr std::string_view recipe_style_sheet = R"(
:root {
  --fp32: #9aa3ab; --fp16: #c8283c; --fp16-master: #d97a00; --fp16-static: #1f77b4; --fp16-dynamic: #0b8a5f;
  --bf16-master: #7b4fc9; --bf16: #c2459c; }
@media (prefers-color-scheme: dark) { :root {
  --fp32: #808b95; --fp16: #ff6b7a; --fp16-master: #ffab40; --fp16-static: #5fb0ee; --fp16-dynamic: #3fcf9a;
  --bf16-master: #b394f5; --bf16: #f08bd0; } }
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
)";

}  // namespace examples::train_digits
