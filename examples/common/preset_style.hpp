// SPDX-License-Identifier: MIT
/// \file
/// How the presets of autocast are drawn: a colour for each system, half as a solid line and bfloat16 and
/// float8 as dashes, and training in float as a broad line behind them.
#pragma once

#include <mp/nn/autocast/region.hpp>

#include <string>
#include <string_view>

namespace examples {

/// The class of the style sheet for the lines of a preset.
inline std::string preset_style(const mp::autocast::preset& preset) {
    if (preset.value == mp::precision::off) return "preset reference";
    const std::string classes = "preset in-" + std::string(mp::name_of(preset.value)) + " ";
    struct style {
        std::string_view beginning;  // of the preset's name
        std::string_view name;
    };
    constexpr style styles[] = {{"fp", "own"},
                                {"bf16", "own"},
                                {"pytorch_cpu", "pytorch cpu"},
                                {"pytorch", "pytorch"},
                                {"tensorflow", "tensorflow"},
                                {"keras", "keras"},
                                {"apex_o2", "apex whole"},
                                {"apex_o3", "apex everything"},
                                {"apex", "apex"},
                                {"mxnet", "mxnet"},
                                {"nvidia", "nvidia"},
                                {"jmp", "jmp"}};
    for (const style& it : styles) {
        if (preset.name.starts_with(it.beginning)) return classes + std::string(it.name);
    }
    return classes + "other";
}

inline constexpr std::string_view preset_style_sheet = R"(
:root { --reference: #9aa3ab; --own: #c8283c; --pytorch: #d97a00; --tensorflow: #1f77b4; --keras: #0b8a5f;
  --apex: #7b4fc9; --mxnet: #c2459c; --nvidia: #6b7a12; --jmp: #0891a5; }
@media (prefers-color-scheme: dark) { :root { --reference: #808b95; --own: #ff6b7a; --pytorch: #ffab40;
  --tensorflow: #5fb0ee; --keras: #3fcf9a; --apex: #b394f5; --mxnet: #f08bd0; --nvidia: #b5c648;
  --jmp: #4fd3e6; } }
.line.preset { stroke-width: 1.8; } .line.reference { stroke: var(--reference); stroke-width: 6; }
.line.own { stroke: var(--own); } .area.own { fill: var(--own); }
.line.pytorch { stroke: var(--pytorch); } .area.pytorch { fill: var(--pytorch); }
.line.tensorflow { stroke: var(--tensorflow); } .area.tensorflow { fill: var(--tensorflow); }
.line.keras { stroke: var(--keras); } .area.keras { fill: var(--keras); }
.line.apex { stroke: var(--apex); } .area.apex { fill: var(--apex); }
.line.mxnet { stroke: var(--mxnet); } .area.mxnet { fill: var(--mxnet); }
.line.nvidia { stroke: var(--nvidia); } .area.nvidia { fill: var(--nvidia); }
.line.jmp { stroke: var(--jmp); } .area.jmp { fill: var(--jmp); }
.line.other { stroke: var(--text); } .area.other { fill: var(--text); }
.area.reference { fill: var(--reference); }
.line.in-bf16 { stroke-dasharray: 8 4; } .line.in-fp8 { stroke-dasharray: 2 3; }
.line.cpu { stroke-dasharray: 14 5; } .line.whole { stroke-dasharray: 20 4; } .line.everything { stroke-dasharray: 9 3 2 3; }
)";

}  // namespace examples
