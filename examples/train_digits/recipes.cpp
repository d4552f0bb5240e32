// SPDX-License-Identifier: MIT
#include "recipes.hpp"

#include <mp/bfloat16.hpp>
#include <mp/frontends/compat/presets.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "../common/preset_style.hpp"

namespace examples::train_digits {
namespace {

using mp::bfloat16;
using mp::half;

mp::dynamic_loss_scaler no_scaling() {
    return mp::dynamic_loss_scaler({}, false);
}

constexpr recipe recipes[] = {
    {"fp32", "fp32",
     [](const training_task& task) { return train<float, float>(task, mp::precision::off, no_scaling()); },
     false, true},
    {"fp16", "fp16 alone",
     [](const training_task& task) { return train<half, half>(task, mp::precision::fp16, no_scaling()); }},
    {"fp16-master", "fp16, master weights",
     [](const training_task& task) { return train<half, float>(task, mp::precision::fp16, no_scaling()); }},
    {"fp16-static", "fp16, masters, static scale",
     [](const training_task& task) {
         const auto weight = static_cast<float>(task.loss_weight);
         return train<half, float>(task, mp::precision::fp16,
                                   mp::static_loss_scaler({.initial_scale = static_scale / weight}));
     },
     true},
    {"fp16-dynamic", "fp16, masters, dynamic scale",
     [](const training_task& task) {
         return train<half, float>(task, mp::precision::fp16,
                                   mp::dynamic_loss_scaler({.growth_interval = growth_interval}));
     },
     true},
    {"bf16-master", "bf16, master weights",
     [](const training_task& task) {
         return train<bfloat16, float>(task, mp::precision::bf16, no_scaling());
     }},
    {"bf16", "bf16 alone",
     [](const training_task& task) {
         return train<bfloat16, bfloat16>(task, mp::precision::bf16, no_scaling());
     }},
};

/// Trains under the preset with this index, as its system has it.
template <std::size_t Index>
training_record train_under_preset(const training_task& task) {
    const mp::autocast::preset& preset = *mp::autocast::presets::all[Index];
    const mp::dynamic_loss_scaler scaler({.growth_interval = growth_interval},
                                         preset.value == mp::precision::fp16);
    return preset.master_weights ? train<float, float>(task, preset, scaler)
                                 : train<half, half>(task, preset, scaler);
}

constexpr std::size_t preset_count = mp::autocast::presets::all.size();

/// The texts that the recipes of presets refer to.
struct preset_texts {
    std::string name;
    std::string title;
    std::string style;
};

const std::vector<preset_texts>& texts_of_presets() {
    static const std::vector<preset_texts> texts = [] {
        std::vector<preset_texts> result;
        for (const mp::autocast::preset* it : mp::autocast::presets::all) {
            const std::string name(it->name);
            result.push_back({"preset-" + name, "preset " + name, preset_style(*it)});
        }
        return result;
    }();
    return texts;
}

template <std::size_t... Index>
std::vector<recipe> make_preset_recipes(std::index_sequence<Index...>) {
    std::vector<recipe> result{{{}, {}, &train_under_preset<Index>}...};
    for (std::size_t i = 0; i < preset_count; ++i) {
        const preset_texts& texts = texts_of_presets()[i];
        const mp::precision value = mp::autocast::presets::all[i]->value;
        result[i].name = texts.name;
        result[i].title = texts.title;
        result[i].style = texts.style;
        result[i].scales_loss = value == mp::precision::fp16;
        result[i].in_float = value == mp::precision::off;
    }
    return result;
}

}  // namespace

std::span<const recipe> all_recipes() {
    return recipes;
}

std::span<const recipe> preset_recipes() {
    static const std::vector<recipe> result = make_preset_recipes(std::make_index_sequence<preset_count>{});
    return result;
}

}  // namespace examples::train_digits
