// SPDX-License-Identifier: MIT
// 8-bit tensors whose scales live on a GPU, against the functions of the CPU; and layers made of them.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gpu.hpp>
#include <mp/nn/scaling/amax.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/training/test_folder.hpp"

namespace gpu_test::tensor_scaling {

using mp::bfloat16;
using mp::device_tensor_scale;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
namespace layers = mp::layers;

template <class Value, class Executor>
mp::tensor<Value> placed(const Executor& exec, std::ptrdiff_t rows, std::ptrdiff_t columns,
                         const std::vector<Value>& values) {
    mp::tensor<Value> made(exec, rows, columns);
    made.copy_from(exec, values);
    return made;
}
template <class Value>
bool same_bits(const std::vector<Value>& a, const std::vector<Value>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
}

/// Codes, those of the transpose, amax and scale of a matrix with gaps between its rows.
template <class Format, class Policy, class Executor>
void check_codes(const Executor& exec, const Policy& policy, const device_tensor_scale& begin,
                 float expected_scale, const std::vector<bfloat16>& values, std::ptrdiff_t rows,
                 std::ptrdiff_t columns, std::ptrdiff_t stride, std::ptrdiff_t turned_stride) {
    CAPTURE(expected_scale);
    std::vector<bfloat16> with_gaps(static_cast<std::size_t>(rows * stride), bfloat16(1e30F));
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        std::copy_n(values.begin() + r * columns, columns, with_gaps.begin() + r * stride);
    }
    const auto from = placed(exec, rows, stride, with_gaps);
    auto scale = placed(exec, 1, 1, std::vector{begin});
    mp::tensor<Format> codes(exec, rows, stride), turned(exec, columns, turned_stride);
    mp::quantize_with_scale(exec, policy, from.view().block(0, 0, rows, columns),
                            codes.view().block(0, 0, rows, columns), turned.view().block(0, 0, columns, rows),
                            scale.values().data());
    const device_tensor_scale found = scale.to_host(exec)[0];
    CHECK(mp::detail::same_value(found.used, expected_scale));
    const float amax = mp::amax(mp::cpu{}, values);
    CHECK(found.amax_bits == mp::detail::bit_cast<std::uint32_t>(amax));
    std::vector<Format> expected(values.size());
    mp::quantize_with_scale(mp::cpu{}, values, expected, expected_scale);
    const auto made = codes.to_host(exec), across = turned.to_host(exec);
    std::size_t wrong = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const auto code = expected[static_cast<std::size_t>(r * columns + c)].bits();
            wrong += made[static_cast<std::size_t>(r * stride + c)].bits() != code;
            wrong += across[static_cast<std::size_t>(c * turned_stride + r)].bits() != code;
        }
    }
    CHECK(wrong == 0);
}

template <class Executor>
void check_codes(const Executor& exec) {
    const auto draw = [](std::ptrdiff_t count, double size, unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal(0, size);
        std::vector<bfloat16> values(static_cast<std::size_t>(count));
        for (bfloat16& value : values) value = bfloat16(static_cast<float>(normal(random)));
        return values;
    };
    device_tensor_scale known;
    known.updates = 3;
    const mp::delayed_scaling to_e4m3{}, to_e5m2{.format_max = 57344.0F};
    const mp::current_scaling current{.format_max = 57344.0F, .power_of_two = true};
    for (const auto& [rows, columns] : {std::array<std::ptrdiff_t, 2>{1, 1}, {33, 40}, {64, 300}, {95, 17}}) {
        CAPTURE(rows);
        CAPTURE(columns);
        const auto values = draw(rows * columns, 0.7, 5);
        const float amax = mp::amax(mp::cpu{}, values);
        known.scale = 123.456F;
        check_codes<float8_e4m3fn>(exec, to_e4m3, known, 123.456F, values, rows, columns, columns, rows);
        check_codes<float8_e4m3fn>(exec, to_e4m3, {}, to_e4m3.scale_for(amax, 1.0F), values, rows, columns,
                                   columns + 8, (rows + 15) / 16 * 16);
        check_codes<float8_e5m2>(exec, to_e5m2, known, 123.456F, values, rows, columns, columns + 3,
                                 rows + 1);
        check_codes<float8_e5m2>(exec, current, {}, current.scale(amax), values, rows, columns, columns,
                                 rows);
    }
    // Products a little below the middle of two codes, whose nearest float is the middle.
    int found = 0;
    for (int j = 1; j < 128 && found < 3; ++j) {
        const double middle = 1.0625, x = 1 + j / 128.0;
        known.scale = static_cast<float>(middle / x);
        if (static_cast<double>(known.scale) * x >= middle) known.scale = std::nextafter(known.scale, 0.0F);
        if (static_cast<float>(static_cast<double>(known.scale) * x) < 1.0625F) continue;
        ++found;
        const std::vector<bfloat16> pair{bfloat16(static_cast<float>(x)), bfloat16(static_cast<float>(-x))};
        check_codes<float8_e4m3fn>(exec, to_e4m3, known, known.scale, pair, 2, 1, 1, 2);
    }
    CHECK(found == 3);
    // An infinity saturates, and is seen; the scale of a first tensor is one then.
    auto values = draw(33 * 40, 1, 6);
    values[777] = bfloat16(-std::numeric_limits<float>::infinity());
    check_codes<float8_e5m2>(exec, to_e5m2, {}, 1.0F, values, 33, 40, 40, 48);
}

/// Windows against amax_history, iteration by iteration; several in one launch.
template <class Executor>
void check_windows(const Executor& exec, const std::vector<std::int32_t>& lengths, int iterations) {
    struct entry {
        mp::amax_history host;
        mp::delayed_scaling policy;
        mp::tensor<float> window;
    };
    std::vector<entry> entries;
    for (const std::int32_t length : lengths) {
        for (const auto algorithm : {mp::amax_algorithm::max, mp::amax_algorithm::most_recent}) {
            for (const auto rule : {mp::delayed_rule::transformer_engine, mp::delayed_rule::ms_amp}) {
                entries.push_back(
                    {mp::amax_history(length),
                     {.format_max = 57344.0F, .margin = length % 3, .algorithm = algorithm, .rule = rule},
                     mp::tensor<float>(exec, 1, length)});
            }
        }
    }
    const auto count = static_cast<std::ptrdiff_t>(entries.size());
    std::vector<device_tensor_scale> states(entries.size());
    auto scales = placed(exec, 1, count, states);
    std::vector<mp::device_amax_history> list;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        entry& it = entries[static_cast<std::size_t>(i)];
        list.push_back({scales.values().data() + i, it.window.values().data(), it.host.length(), it.policy});
    }
    std::mt19937 random(7);
    const auto all = std::span<const mp::device_amax_history>(list);
    auto on_device = placed(exec, 1, count, list);
    for (int iteration = 0; iteration < iterations; ++iteration) {
        CAPTURE(iteration);
        for (int times = 0; times < 2; ++times) {
            states = scales.to_host(exec);
            for (std::size_t i = 0; i < entries.size(); ++i) {
                float amax = std::ldexp(std::uniform_real_distribution<float>(1, 2)(random),
                                        std::uniform_int_distribution<int>(-20, 20)(random));
                const auto kind = random() % 8;
                if (kind == 0) amax = 0;
                if (kind == 1) amax = std::numeric_limits<float>::infinity();
                if (kind == 2) amax = std::numeric_limits<float>::quiet_NaN();
                states[i].amax_bits = mp::detail::bit_cast<std::uint32_t>(amax) & 0x7fffffffU;
                if (states[i].amax_bits < 0x7f800000U) entries[i].host.record(amax);
            }
            scales.copy_from(exec, states);
            times == 0 ? mp::record_amax(exec, all) : mp::record_amax(exec, on_device.values().data(), count);
        }
        iteration % 2 == 0 ? mp::update_scales(exec, all)
                           : mp::update_scales(exec, on_device.values().data(), count);
        states = scales.to_host(exec);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            entry& it = entries[i];
            it.host.update(it.policy);
            const auto view = it.host.view();
            wrong +=
                !mp::detail::same_value(states[i].scale, *view.scale) || states[i].updates != *view.updates;
            wrong += !same_bits(it.window.to_host(exec),
                                std::vector<float>(view.history, view.history + view.length));
        }
        CHECK(wrong == 0);
    }
}

/// Both roundings of a matrix with numbers of all sizes, infinities and NaNs.
template <class Executor>
void check_mx(const Executor& exec) {
    constexpr std::ptrdiff_t rows = 70, columns = 270, stride = 275;
    std::mt19937 random(11);
    std::vector<bfloat16> values(static_cast<std::size_t>(rows * stride));
    for (std::size_t i = 0; i < values.size(); ++i) {
        // Some blocks of all bits there are, some near to each other.
        values[i] = i / 64 % 3 == 0 ? bfloat16::from_bits(static_cast<std::uint16_t>(random()))
                                    : bfloat16(std::normal_distribution<float>(0.0F, 1e-3F)(random));
    }
    const auto from = placed(exec, rows, stride, values);
    mp::tensor<bfloat16> along_rows(exec, rows, columns), along_columns(exec, rows, columns);
    quantise_mx(mp::detail::mx_blocks{}, exec, from.view().block(0, 0, rows, columns), along_rows.view(),
                along_columns.view());
    for (const bool across : {false, true}) {
        CAPTURE(across);
        mp::tensor<bfloat16> expected(rows, columns);
        const mp::matrix_view<const bfloat16> source{values.data(), rows, columns, stride};
        mp::detail::quantise_mx(mp::cpu{}, source, expected.view(), across);
        const auto found = (across ? along_columns : along_rows).to_host(exec);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            const bfloat16 it = expected.values()[i];
            wrong += mp::isnan(it) ? !mp::isnan(found[i]) : found[i].bits() != it.bits();
        }
        CHECK(wrong == 0);
    }
}

/// A layer, and what it is given.
template <class Policy, class Executor>
struct place {
    static constexpr std::ptrdiff_t rows = 37, in = 52, out = 45;
    Executor exec;
    mp::parameter_store<bfloat16> store;
    layers::linear<bfloat16, bfloat16, Policy> layer;
    mp::tensor<bfloat16> x, dy, dx;

    explicit place(const Executor& on)
        : exec(on),
          layer(store, "fc", in, out, {.float8 = {.amax_history_length = 3}}),
          x(exec, rows, in),
          dy(exec, rows, out + 3),
          dx(exec, rows, in) {
        store.build(exec, 1);
    }
    void fill(double of_x, double of_dy) {
        const auto draw = [&](mp::tensor<bfloat16>& to, double size, std::uint64_t seed) {
            std::vector<bfloat16> values(to.size());
            mp::initialize(std::span(values), mp::initializers::normal(size), seed, 0);
            to.copy_from(exec, values);
        };
        draw(x, of_x, 3);
        draw(dy, of_dy, 4);
    }
    mp::matrix_view<bfloat16> forward() { return layer.forward(exec, x.view()); }
    void backward(bool add) {
        layer.backward(exec, std::as_const(dy).view().block(0, 0, rows, out), dx.view(), add);
    }
    /// Result, gradient of the input, gradients of weights and bias.
    std::array<std::vector<bfloat16>, 3> results() {
        const auto y = layer.result();
        return {mp::host_copy(exec, std::span<const bfloat16>(y.data, static_cast<std::size_t>(rows * out))),
                dx.to_host(exec), mp::host_copy(exec, std::span<const bfloat16>(store.gradients()))};
    }
    auto everything() {
        return [this](auto& visit) {
            visit("weights", store);
            visit("layer", layer);
        };
    }
};

inline std::string file_of(const std::string& path, auto&& everything) {
    mp::save_checkpoint(path, everything);
    return read_file(path);
}

/// The largest difference, in parts of the largest number.
inline double difference(const std::vector<bfloat16>& found, const std::vector<bfloat16>& expected) {
    REQUIRE(found.size() == expected.size());
    double most = 0, size = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
        if (std::isnan(a) && std::isnan(b)) continue;
        if (!(std::abs(a - b) <= most)) most = std::abs(a - b);
        size = std::max(size, std::abs(b));
    }
    return size > 0 ? most / size : most;
}

/// The CPU's operands, scales and windows to the bit, so the products but for the order of their sums, and the
/// CPU's checkpoints, from which either goes on.
///
/// Both round sums to bfloat16, whose neighbours are 2^-8 of a number away at most; sums of floats, and tensor cores
/// that keep 13 bits of every 32 products, move what is near the middle to the other side.
template <class Policy, class Executor>
void check_layer(const Executor& exec) {
    const test_folder folder;
    place<Policy, mp::cpu> host(mp::cpu{});
    place<Policy, Executor> device(exec);
    const auto iteration = [](auto& it, double size) {
        it.store.weights_changed();
        for (const bool add : {false, true}) {
            it.fill(add ? size / 2 : size, size * 1e-5);
            it.forward();
            it.backward(add);
        }
        it.forward();  // as a validation does; it leaves no trace
    };
    const auto compare = [&](auto& other) {
        const auto found = other.results(), expected = host.results();
        for (std::size_t i = 0; i < found.size(); ++i) {
            CAPTURE(i);
            CHECK(difference(found[i], expected[i]) < 0x1p-7);
        }
        CHECK(file_of(folder.file("device"), other.everything()) ==
              file_of(folder.file("host"), host.everything()));
    };
    for (const double size : {1.0, 8.0, 0.5, 0.5, 1e-30}) {
        CAPTURE(size);
        iteration(host, size);
        iteration(device, size);
        compare(device);
    }
    CHECK(device.layer.bytes() > 0);
    place<Policy, Executor> resumed(exec);
    resumed.forward();  // its memory is there already, and is written to
    mp::load_checkpoint(folder.file("host"), resumed.everything());
    place<Policy, mp::cpu> back(mp::cpu{});
    mp::load_checkpoint(folder.file("device"), back.everything());
    for (const double size : {0.7, 2.0}) {
        CAPTURE(size);
        iteration(host, size);
        iteration(resumed, size);
        iteration(back, size);
        compare(resumed);
        CHECK(file_of(folder.file("device"), back.everything()) ==
              file_of(folder.file("host"), host.everything()));
        CHECK(same_bits(back.results()[0], host.results()[0]));
    }
    // What is not finite is seen by whoever looks at gradients, and is no measure.
    const auto spoil = [](auto& it, auto member) {
        it.fill(1.0, 1e-5);
        auto& values = it.*member;
        auto bad = values.to_host(it.exec);
        bad[5] = bfloat16(std::numeric_limits<float>::quiet_NaN());
        values.copy_from(it.exec, bad);
        it.store.weights_changed();
        it.forward();
        it.backward(false);
        const auto dw = it.results()[2];
        CHECK(std::any_of(dw.begin(), dw.end(), [](bfloat16 value) { return !mp::isfinite(value); }));
    };
    spoil(host, &place<Policy, mp::cpu>::x);
    spoil(resumed, &place<Policy, Executor>::x);
    compare(resumed);
    spoil(host, &place<Policy, mp::cpu>::dy);
    spoil(resumed, &place<Policy, Executor>::dy);
    compare(resumed);
}

/// What a step of some layers enqueues after the first one.
template <class Executor>
std::size_t launches_of_step(const Executor& exec, std::size_t count) {
    mp::parameter_store<bfloat16> store;
    std::vector<layers::linear<bfloat16, bfloat16, layers::float8_delayed_scaling>> all;
    for (std::size_t i = 0; i < count; ++i) {
        all.emplace_back(store, "fc" + std::to_string(i), 16, 16,
                         layers::linear_options{.float8 = {.amax_history_length = 2}});
    }
    store.build(exec, 1);
    mp::tensor<bfloat16> x(exec, 16, 16), dx(exec, 16, 16);
    const auto step = [&] {
        for (const bool add : {false, true}) {
            for (auto& it : all) it.forward(exec, std::as_const(x).view());
            for (auto& it : all) it.backward(exec, std::as_const(x).view(), dx.view(), add);
        }
        store.weights_changed();
    };
    step();
    exec.recorder->begin();
    step();
    exec.recorder->end();
    return exec.recorder->size();
}

/// Steps that are captured and launched again, with validations between them, have the bits of steps that are not.
template <class Policy, class Executor>
void check_captured(const Executor& exec) {
    const test_folder folder;
    struct run {
        place<Policy, Executor> it;
        mp::gpu_sgd<Executor, bfloat16> optimizer;
        mp::gpu_loss_scaler<Executor, mp::static_policy> scaler;
        mp::replayed_step<Executor> replayed;
        int bodies = 0;

        explicit run(const Executor& on)
            : it(on),
              optimizer(on, it.store.parameters(on), mp::sgd_options{.learning_rate = 0.1}),
              scaler(on, mp::static_policy{.initial_scale = 1.0}),
              replayed(on) {}
        void step(int number, bool captures) {
            it.fill(1.0 + number, 1e-2 / (1.0 + number));
            const auto body = [&] {
                ++bodies;
                mp::training_iteration iteration(scaler, optimizer);
                for (const bool add : {false, true}) {
                    it.forward();
                    it.backward(add);
                }
                iteration.finish();
            };
            captures ? replayed.run(body) : body();
            if (number % 3 == 0) it.forward();
        }
    };
    run captured(exec), plain(exec);
    for (int number = 0; number < 7; ++number) {
        CAPTURE(number);
        captured.step(number, true);
        plain.step(number, false);
        CHECK(file_of(folder.file("captured"), captured.it.everything()) ==
              file_of(folder.file("plain"), plain.it.everything()));
        CHECK(same_bits(captured.it.results()[0], plain.it.results()[0]));
    }
    CHECK(captured.bodies == 2);
    CHECK(plain.bodies == 7);
    // A state that was loaded is what launches of the graph go on with.
    run other(exec);
    for (int number = 0; number < 3; ++number) other.step(number + 10, true);
    mp::load_checkpoint(folder.file("plain"), other.it.everything());
    for (run* const it : {&other, &plain}) it->optimizer.reload_master_weights();
    other.step(7, true);
    plain.step(7, false);
    CHECK(file_of(folder.file("captured"), other.it.everything()) ==
          file_of(folder.file("plain"), plain.it.everything()));
}

}  // namespace gpu_test::tensor_scaling
