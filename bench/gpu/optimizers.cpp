// SPDX-License-Identifier: MIT
// The passes of a training step over gradients and weights, beside the device's own copy of as many bytes:
// unscaling and checking, counting, the norm, SGD and AdamW with float masters. One large tensor, and many of
// a size that occurs in networks, which share launches.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device.hpp"
#include "measure.hpp"
#include "random_data.hpp"

namespace {

using bench::gpu::device;
using bench::gpu::measurements;
using bench::gpu::random_array;
using mp::bfloat16;

/// Tensors of one training, as parts of one allocation for each kind of array.
struct tensors {
    tensors(device& on, std::size_t number, std::size_t each)
        : count(number),
          size(each),
          weights(random_array<bfloat16>(on, number * each, 1)),
          gradients(random_array<bfloat16>(on, number * each, 2, 1e-3F)),
          unscaled(on.make<float>(number * each)),
          masters(on.make<float>(number * each)),
          mean(on.make<float>(number * each)),
          mean_square(on.make<float>(number * each)),
          report(on.put(std::vector<mp::device_gradient_report>(1))),
          inverse_scale(on.put(std::vector<float>{1.0F / 1024})) {
        for (std::size_t i = 0; i < number; ++i) {
            const auto part = [&](auto span) { return span.subspan(i * each, each); };
            for_unscale.push_back({part(std::span<const bfloat16>(gradients.span())), part(unscaled.span())});
            for_sgd.push_back({.weights = part(weights.span()),
                               .gradient = part(std::span<const bfloat16>(gradients.span())),
                               .masters = part(masters.span()),
                               .momentum = part(mean.span())});
            for_adamw.push_back(for_sgd.back());
            for_adamw.back().mean_square = part(mean_square.span());
        }
    }

    std::size_t count;
    std::size_t size;
    device::array<bfloat16> weights;
    device::array<bfloat16> gradients;
    device::array<float> unscaled;
    device::array<float> masters;
    device::array<float> mean;
    device::array<float> mean_square;
    device::array<mp::device_gradient_report> report;
    device::array<float> inverse_scale;
    std::vector<mp::gpu_gradient<bfloat16>> for_unscale;
    std::vector<mp::gpu_parameter<bfloat16>> for_sgd;
    std::vector<mp::gpu_parameter<bfloat16>> for_adamw;
};

void measure(device& on, measurements& to, std::size_t number, std::size_t each) {
    const std::string table = std::to_string(number) + " tensors of " + std::to_string(each) + " bfloat16";
    if (!to.may_select(table)) return;
    const auto exec = on.exec();
    tensors all(on, number, each);
    const auto values = static_cast<double>(number * each);
    auto source = random_array<float>(on, number * each * 4, 3);
    auto target = on.make<float>(number * each * 4);
    const auto add = [&](const std::string& name, double bytes_of_each, std::function<void()> run) {
        const auto half_of_them = static_cast<std::size_t>(values * bytes_of_each / 2);
        to.add(
            {table, name, "GB/s", values, values * bytes_of_each, 0},
            {{"mp", std::move(run), "mp"},
             {"copy", [&, half_of_them] { on.copy(target.data(), source.data(), half_of_them); }, "limit"}});
    };
    const float* scale = all.inverse_scale.data();
    add("unscale and check", 2 + 4,
        [&] { mp::unscale_and_check(exec, all.for_unscale, scale, all.report.data()); });
    add("check", 2, [&] { mp::check_gradients(exec, all.for_unscale, scale, all.report.data()); });

    auto norm = on.put(std::vector<mp::device_gradient_norm>(1));
    auto workspace = on.make<double>(mp::gradient_norm_workspace(all.for_unscale));
    const auto gradient_norm = [&] {
        mp::gradient_norm(exec, all.for_adamw, scale, workspace.span(), norm.data(), 1.0, all.report.data());
    };
    add("norm and check", 2, gradient_norm);

    const mp::sgd_options sgd{.learning_rate = 1e-3, .momentum = 0.9};
    auto sgd_state = on.put(std::vector{mp::make_device_optimizer(sgd)});
    const mp::gpu_gradient_state gradients{.inverse_scale = scale, .report = all.report.data()};
    add("SGD with momentum", 2 + 4 + 4 + 2 + 4 + 4,
        [&] { mp::sgd_step(exec, all.for_sgd, sgd, sgd_state.data(), gradients); });

    const mp::adamw_options adamw{};
    auto adamw_state = on.put(std::vector{mp::make_device_optimizer(adamw)});
    const auto step = [&] {
        mp::adamw_step(
            exec, all.for_adamw, adamw, adamw_state.data(),
            {.inverse_scale = scale, .clip_factor = &norm.data()->clip_factor, .report = all.report.data()});
    };
    add("AdamW", 2 + 4 * 3 + 2 + 4 * 3, step);
    add("norm, check, clipped AdamW", 2 + 2 + 4 * 3 + 2 + 4 * 3, [&] {
        gradient_norm();
        step();
    });
    // Nothing was skipped without anybody seeing it.
    const mp::device_gradient_report seen = on.get(all.report).front();
    if (seen.found()) throw std::runtime_error("the gradients of " + table + " are not finite");
}

}  // namespace

int main(int argc, char** argv) {
    return bench::gpu::run_program(argc, argv, "optimizers", [](device& on, measurements& to) {
        if (device::is_simulated) {
            measure(on, to, 1, 5000);
            measure(on, to, 30, 129);
        } else {
            measure(on, to, 1, std::size_t{1} << 27);
            measure(on, to, 1000, std::size_t{1} << 16);
            measure(on, to, 1000, 4096);
        }
    });
}
