// SPDX-License-Identifier: MIT
// Passes over arrays and matrices beside the device's own copy of as many bytes, read and written in all:
// conversions, activations, layers and their gradients, block-scaled formats.
#include <mp/bfloat16.hpp>
#include <mp/block_scaled.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device.hpp"
#include "measure.hpp"
#include "random_data.hpp"

namespace {

using bench::gpu::device;
using bench::gpu::measurements;
using bench::gpu::random_array;
using mp::bfloat16;

/// Several times what the caches of a device hold, for 16 bits.
constexpr std::ptrdiff_t elements = device::is_simulated ? 1 << 12 : 1 << 27;

/// A pass and the bytes that it cannot do without.
class passes {
public:
    passes(device& on, measurements& to) : on_(&on), to_(&to) {}

    /// See measurements::may_select.
    [[nodiscard]] bool may_select(std::string_view text) const { return to_->may_select(text); }

    void add(const std::string& table, const std::string& name, double count, double bytes,
             std::function<void()> run) {
        if (!may_select(name)) return;
        const auto half_of_them = static_cast<std::size_t>(bytes / 2);
        if (source_.size() < half_of_them) {
            source_ = random_array<bfloat16>(*on_, half_of_them / sizeof(bfloat16) + 1, 7);
            target_ = on_->make<bfloat16>(source_.size());
        }
        to_->add({table, name, "GB/s", count, bytes, 0},
                 {{"mp", std::move(run), "mp"},
                  {"copy", [this, half_of_them] { on_->copy(target_.data(), source_.data(), half_of_them); },
                   "limit"}});
    }

private:
    device* on_;
    measurements* to_;
    device::array<bfloat16> source_ = on_->make<bfloat16>(1);
    device::array<bfloat16> target_ = on_->make<bfloat16>(1);
};

template <class Value>
constexpr double bytes_of(double count) {
    return count * sizeof(Value);
}

template <class From, class To>
void convert(device& on, passes& to, const std::string& name, std::ptrdiff_t size) {
    if (!to.may_select(name)) return;
    const auto count = static_cast<std::size_t>(size);
    const auto from = random_array<From>(on, count, 1);
    auto target = on.make<To>(count);
    const auto number = static_cast<double>(size);
    to.add("conversions of arrays", name, number, bytes_of<From>(number) + bytes_of<To>(number),
           [&] { mp::convert(on.exec(), std::span<const From>(from.span()), target.span()); });
}

void activations(device& on, passes& to) {
    const std::string table = "activations of bfloat16";
    if (!to.may_select(table)) return;
    const auto count = static_cast<std::size_t>(elements);
    const auto x = random_array<bfloat16>(on, count, 1);
    const auto dy = random_array<bfloat16>(on, count, 2);
    auto y = on.make<bfloat16>(count);
    const auto view = [](auto& array) { return mp::row_major(array.data(), elements / 64, 64); };
    const auto exec = on.exec();
    const auto one = static_cast<double>(elements) * sizeof(bfloat16);
    const auto number = static_cast<double>(elements);
    to.add(table, "relu", number, 2 * one, [&] { mp::ops::relu(exec, view(x), view(y)); });
    to.add(table, "gelu", number, 2 * one, [&] { mp::ops::gelu(exec, view(x), view(y)); });
    to.add(table, "gelu by tanh", number, 2 * one,
           [&] { mp::ops::gelu(exec, view(x), view(y), mp::ops::gelu_formula::tanh); });
    to.add(table, "silu", number, 2 * one, [&] { mp::ops::silu(exec, view(x), view(y)); });
    to.add(table, "relu backward", number, 3 * one,
           [&] { mp::ops::relu_backward(exec, view(x), view(dy), view(y)); });
    to.add(table, "gelu backward", number, 3 * one,
           [&] { mp::ops::gelu_backward(exec, view(x), view(dy), view(y)); });
}

void layers(device& on, passes& to, std::ptrdiff_t columns) {
    const std::string table = "layers of bfloat16";
    const std::string suffix = ", rows of " + std::to_string(columns);
    if (!to.may_select(suffix)) return;
    const std::ptrdiff_t rows = elements / columns;
    const std::ptrdiff_t size = rows * columns;
    const auto count = static_cast<std::size_t>(size);
    const auto x = random_array<bfloat16>(on, count, 1);
    const auto dy = random_array<bfloat16>(on, count, 2);
    auto y = on.make<bfloat16>(count);
    const auto gamma = random_array<float>(on, static_cast<std::size_t>(columns), 3);
    const auto beta = random_array<float>(on, static_cast<std::size_t>(columns), 4);
    auto dgamma = on.make<float>(static_cast<std::size_t>(columns));
    auto dbeta = on.make<float>(static_cast<std::size_t>(columns));
    auto memory =
        on.make<float>(mp::ops::normalization_backward_workspace(rows, columns) / sizeof(float) + 1);
    mp::workspace workspace(std::as_writable_bytes(memory.span()));
    const auto view = [&](auto& array) { return mp::row_major(array.data(), rows, columns); };
    auto exec = on.exec();
    exec.workspace = &workspace;
    const auto number = static_cast<double>(size);
    const double one = number * sizeof(bfloat16);
    const auto g = gamma.span();
    const auto b = beta.span();
    to.add(table, "softmax" + suffix, number, 2 * one, [&] { mp::ops::softmax(exec, view(x), view(y)); });
    to.add(table, "softmax backward" + suffix, number, 3 * one,
           [&] { mp::ops::softmax_backward(exec, view(x), view(dy), view(y)); });
    to.add(table, "layer norm" + suffix, number, 2 * one,
           [&] { mp::ops::layer_norm(exec, view(x), g, b, view(y)); });
    to.add(table, "rms norm" + suffix, number, 2 * one,
           [&] { mp::ops::rms_norm(exec, view(x), g, view(y)); });
    // dx needs x and dy; the sums for gamma and beta read both a second time.
    to.add(table, "layer norm backward" + suffix, number, 5 * one, [&] {
        mp::ops::layer_norm_backward(exec, view(x), g, view(dy), view(y), dgamma.span(), dbeta.span());
    });
    to.add(table, "bias gradient" + suffix, number, one,
           [&] { mp::ops::sum(exec, view(x), dgamma.span(), mp::ops::per::column); });
}

void cross_entropy(device& on, passes& to, std::ptrdiff_t columns) {
    if (!to.may_select("cross entropy")) return;
    const std::ptrdiff_t rows = elements / columns;
    const auto count = static_cast<std::size_t>(rows * columns);
    const auto logits = random_array<bfloat16>(on, count, 1);
    auto gradient = on.make<bfloat16>(count);
    std::vector<int> labels(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = static_cast<int>(i * 7919 % static_cast<std::size_t>(columns));
    }
    const auto device_labels = on.put(labels);
    auto losses = on.make<float>(labels.size());
    auto loss = on.make<float>(1);
    const auto number = static_cast<double>(count);
    to.add("layers of bfloat16", "cross entropy and its gradient, rows of " + std::to_string(columns), number,
           2 * number * sizeof(bfloat16), [&] {
               mp::ops::softmax_cross_entropy_with_gradient(
                   on.exec(), mp::row_major(logits.data(), rows, columns), device_labels.span(), loss.data(),
                   losses.span(), mp::row_major(gradient.data(), rows, columns));
           });
}

template <class Format>
void blocks(device& on, passes& to, const std::string& name) {
    if (!to.may_select(name)) return;
    constexpr std::ptrdiff_t columns = device::is_simulated ? 256 : 4096;
    const std::ptrdiff_t rows = elements / columns;
    using span = mp::block_scaled_span<Format>;
    const auto x = random_array<bfloat16>(on, static_cast<std::size_t>(elements), 1);
    auto back = on.make<bfloat16>(static_cast<std::size_t>(elements));
    auto codes = on.make<std::byte>(span::element_bytes(rows, columns));
    auto scales = on.make<typename Format::scale_type>(span::scale_count(rows, columns));
    auto tensor_scale = on.make<float>(1);
    const span quantised{codes.span(),
                         scales.span(),
                         rows,
                         columns,
                         mp::block_direction::along_rows,
                         Format::has_tensor_scale ? tensor_scale.data() : nullptr};
    const auto number = static_cast<double>(elements);
    const double of_blocks = static_cast<double>(codes.size() + scales.size());
    const double of_values = number * sizeof(bfloat16);
    // The scale of the tensor takes a pass over the values of its own.
    const double passes_over_values = Format::has_tensor_scale ? 2 : 1;
    to.add("block-scaled formats and bfloat16", "to " + name, number,
           passes_over_values * of_values + of_blocks,
           [&] { mp::quantize(on.exec(), mp::row_major(x.data(), rows, columns), quantised); });
    to.add("block-scaled formats and bfloat16", "from " + name, number, of_values + of_blocks,
           [&] { mp::dequantize(on.exec(), quantised, mp::row_major(back.data(), rows, columns)); });
}

}  // namespace

int main(int argc, char** argv) {
    struct part {
        const char* name;
        void (*run)(device& on, passes& to);
    };
    constexpr part parts[] = {
        {"conversions",
         [](device& on, passes& to) {
             constexpr std::ptrdiff_t in_cache = device::is_simulated ? 1000 : 1 << 20;
             convert<float, mp::half>(on, to, "float to half", elements / 2);
             convert<float, mp::half>(on, to, "float to half, a million", in_cache);
             convert<mp::half, float>(on, to, "half to float", elements / 2);
             convert<float, bfloat16>(on, to, "float to bfloat16", elements / 2);
             convert<float, mp::float8_e4m3fn>(on, to, "float to float8_e4m3fn", elements / 2);
             convert<bfloat16, mp::float8_e5m2>(on, to, "bfloat16 to float8_e5m2", elements);
             convert<mp::float8_e4m3fn, bfloat16>(on, to, "float8_e4m3fn to bfloat16", elements);
         }},
        {"activations", activations},
        {"layers",
         [](device& on, passes& to) {
             for (const std::ptrdiff_t columns : {256, 1024, 4096}) layers(on, to, columns);
         }},
        {"losses", [](device& on, passes& to) { cross_entropy(on, to, device::is_simulated ? 300 : 32000); }},
        {"blocks", [](device& on, passes& to) {
             blocks<mp::mxfp8_e4m3>(on, to, "mxfp8_e4m3");
             blocks<mp::mxfp4>(on, to, "mxfp4");
             blocks<mp::nvfp4>(on, to, "nvfp4");
         }}};
    return bench::gpu::run_program(
        argc, argv, "arrays", [&](device& on, measurements& to, const std::vector<std::string>& chosen) {
            passes all(on, to);
            bench::gpu::for_chosen(parts, chosen, [&](const part& it) { it.run(on, all); });
        });
}
