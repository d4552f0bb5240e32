// SPDX-License-Identifier: MIT
#include "train_digits/training.hpp"

#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/frontends/compat/presets.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <vector>

namespace {

using examples::train_digits::training_record;
using examples::train_digits::training_task;
using mp::half;

const examples::split_digits& data() {
    static const examples::split_digits parts =
        examples::split(examples::read_digits(MP_EXAMPLE_DATA_DIR "/digits.csv"), 128);
    return parts;
}

mp::dynamic_loss_scaler no_scaling() {
    return mp::dynamic_loss_scaler({}, false);
}

training_record train_half(const training_task& task) {
    return examples::train_digits::train<half, float>(task, mp::precision::fp16, no_scaling());
}

TEST_CASE("the same seed gives the same numbers, and another seed others") {
    const training_task task{.data = &data(), .epochs = 2, .seed = 3};
    const training_record first = train_half(task);
    const training_record second = train_half(task);
    CHECK(first.losses.size() == 2);
    CHECK(first.losses == second.losses);
    CHECK(first.accuracy == second.accuracy);
    CHECK(first.gradients.relative_error == second.gradients.relative_error);
    CHECK(first.gradients.parameters == second.gradients.parameters);
    CHECK(first.losses != train_half({.data = &data(), .epochs = 2, .seed = 4}).losses);
}

TEST_CASE("a power of two as loss weight changes nothing in float, whose range is wide enough") {
    const auto train = [](double weight) {
        return examples::train_digits::train<float, float>(
            {.data = &data(), .epochs = 2, .loss_weight = weight}, mp::precision::off, no_scaling());
    };
    const training_record ordinary = train(1.0);
    const training_record weighted = train(0x1p-14);
    CHECK(ordinary.losses == weighted.losses);
    CHECK(ordinary.accuracy == weighted.accuracy);
    CHECK(ordinary.gradients.relative_error == 0.0);
    CHECK(weighted.gradients.parameters.flushed > 2 * ordinary.gradients.parameters.flushed);
    CHECK(ordinary.losses.back() < 1);
    CHECK(ordinary.accuracy > 0.7);
}

TEST_CASE(
    "without scaling small gradients vanish in half, and static scaling by the weight brings them back") {
    const training_task ordinary{.data = &data(), .epochs = 2};
    training_task weighted = ordinary;
    weighted.loss_weight = 0x1p-14;
    const training_record lost = train_half(weighted);
    CHECK(lost.gradients.parameters.flushed_fraction() > 0.3);
    const training_record kept = examples::train_digits::train<half, float>(
        weighted, mp::precision::fp16, mp::static_loss_scaler({.initial_scale = 0x1p14F}));
    CHECK(kept.losses == train_half(ordinary).losses);
    CHECK(kept.gradients.mean_relative_error() < 0.05);
    CHECK(kept.scales == std::vector<float>(22, 0x1p14F));
}

TEST_CASE("a scale that is too large is found by skipping, and what is skipped is on record") {
    const training_record record =
        examples::train_digits::train<half, float>({.data = &data(), .epochs = 1}, mp::precision::fp16,
                                                   mp::dynamic_loss_scaler({.initial_scale = 0x1p24F}));
    CHECK(record.skipped.size() >= 3);
    CHECK(record.skipped.size() < 11);
    for (std::size_t i = 0; i < record.skipped.size(); ++i) CHECK(record.skipped[i] == i);
    CHECK(record.scales.size() == 11);
    CHECK(record.final_scale < 0x1p24);
    CHECK(record.losses.back() < 3);
}

TEST_CASE("memory a parameter is weight, gradient, master and momentum") {
    const training_task task{.data = &data(), .epochs = 1};
    CHECK(train_half(task).bytes_per_parameter == 2 + 2 + 4 + 4);
    const auto alone =
        examples::train_digits::train<mp::bfloat16, mp::bfloat16>(task, mp::precision::bf16, no_scaling());
    CHECK(alone.bytes_per_parameter == 2 + 2 + 2);
    CHECK(alone.gradients.parameters.flushed == 0);
}

TEST_CASE("a preset in place of the precision changes what is cast and nothing else") {
    namespace presets = mp::autocast::presets;
    const training_task task{.data = &data(), .epochs = 1};
    const auto under = [&](const auto& way) {
        return examples::train_digits::train<float, float>(task, way, no_scaling());
    };
    const training_record plain = under(mp::precision::off);
    CHECK(under(presets::keras_float32).losses == plain.losses);
    const training_record cast = under(presets::pytorch_cuda);
    CHECK(cast.losses != plain.losses);
    CHECK(cast.losses == under(mp::precision::fp16).losses);
    CHECK(cast.gradients.relative_error > 0.0);
    // Gradients are judged in the format that the preset computes in: without a scale half flushes some,
    // bfloat16 none.
    CHECK(cast.gradients.parameters.flushed > 0);
    CHECK(under(presets::pytorch_cpu).gradients.parameters.flushed == 0);
}

TEST_CASE("progress is told once an epoch") {
    int epochs = 0;
    train_half({.data = &data(), .epochs = 3, .after_epoch = [&] { ++epochs; }});
    CHECK(epochs == 3);
}

}  // namespace
