// SPDX-License-Identifier: MIT
#include "recipes.hpp"

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

namespace examples::train_digits {
namespace {

using mp::bfloat16;
using mp::half;

mp::dynamic_loss_scaler no_scaling() {
    return mp::dynamic_loss_scaler({}, false);
}

constexpr recipe recipes[] = {
    {"fp32", "fp32",
     [](const training_task& task) { return train<float, float>(task, mp::precision::off, no_scaling()); }},
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

}  // namespace

std::span<const recipe> all_recipes() {
    return recipes;
}

}  // namespace examples::train_digits
