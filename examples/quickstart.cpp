// SPDX-License-Identifier: MIT
/// \file
/// A first look: numbers, arrays, a matrix product, and one step of training with a scaled loss.
#include <mp/mp.hpp>

#include <cstdio>
#include <iostream>
#include <vector>

using namespace mp::literals;  // NOLINT(google-build-using-namespace): what the namespace is for

int main() {
    // Numbers round once, to nearest even, and everything about them is constexpr.
    constexpr mp::half third = 1.0_h / 3.0_h;
    static_assert(third.bits() == 0x3555 && 65504.0_h + 16.0_h == mp::half(1e9));
    std::cout << "1/3 is " << third << " in half and " << mp::bfloat16(1.0 / 3) << " in bfloat16\n";

    // Arrays are converted as a whole, and a report says what a format would do to them.
    const mp::cpu exec{.threads = 2, .products = mp::accumulation::ordered};
    const std::vector<float> gradients{3e-9F, -2e-7F, 0.0F, 0.25F, 70000.0F};
    std::vector<mp::half> narrow(gradients.size());
    mp::convert(exec, gradients, narrow);
    const mp::range_report report = mp::report_range<mp::half>(exec, gradients);
    std::printf("as halves %d of %d vanish, %d is subnormal and %d overflows\n", int(report.flushed),
                int(report.count), int(report.subnormals), int(report.overflows));

    // Inside the region the layer takes float arrays to bfloat16, or to what MP_AUTOCAST=fp16|bf16|fp8|off
    // says in the environment; sums stay in float.
    const std::vector<float> x{1, 2, 3, 4, 5, 6}, w{0.5F, -1, 0.25F, 1, 1, 1}, bias{0, 0.1F};
    std::vector<float> y(4);
    {
        const mp::autocast_region region(mp::precision_from_environment("MP_AUTOCAST", mp::precision::bf16));
        mp::ops::linear(exec, mp::row_major(x.data(), 2, 3), mp::row_major(w.data(), 2, 3), bias,
                        mp::row_major(y.data(), 2, 2), mp::ops::activation::relu);
    }
    std::printf("relu(x w^T + b) is %g %g %g %g\n", y[0], y[1], y[2], y[3]);

    // A half network with float master weights, and a scale on the loss that finds its own size.
    std::vector<mp::half> weights{1.0_h, 2.0_h}, gradient(2);
    mp::sgd<mp::half> optimizer({{"weights", weights, gradient}}, {.learning_rate = 0.1});
    mp::dynamic_loss_scaler scaler;
    for (const float slope : {0.5F, 1e30F, -1.0F}) {
        for (mp::half& g : gradient) g = mp::half(scaler.scale(slope));
        std::cout << to_string(scaler.step(optimizer)) << ": weights " << weights[0] << " " << weights[1]
                  << "\n";
        scaler.update();
    }
}
