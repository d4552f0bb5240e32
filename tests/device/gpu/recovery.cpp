// SPDX-License-Identifier: MIT
// One finite gradient of any size on a GPU: steps are skipped as on the CPU, for the same tensor, and what is
// applied has the same bits. tests/nn/optim/recovery.cpp compares the CPU with a model.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/optim/gpu/grouped_optimizer.hpp>
#include <mp/nn/optim/gpu/loss_scaler.hpp>
#include <mp/nn/optim/gpu/optimizer.hpp>
#include <mp/nn/optim/gpu/training_iteration.hpp>
#include <mp/optim.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "nn/optim/recovery_model.hpp"

namespace {

using mp::bfloat16, mp::half;
using simulated = mp::simulated_gpu<mp::arch::sm_80>;

constexpr std::size_t size = 70;

template <class Value>
void fill(std::vector<Value>& g, int step) {
    const auto values = recovery::ordinary(size, step);
    std::transform(values.begin(), values.end(), g.begin(),
                   [](double it) { return Value(static_cast<float>(it)); });
}

template <class Weight>
struct network {
    std::vector<Weight> first = std::vector<Weight>(size, Weight(1.0F));
    std::vector<Weight> second = first;
};

/// Four steps, of which the second has the large gradient. With a limit of the norm it is clipped first.
template <class Host, class Device, class Options>
void check_one(const Options& options, typename Host::gradient_type large, double max_norm) {
    using weight = typename Host::weight_type;
    using gradient = typename Host::gradient_type;
    const mp::static_policy policy{.initial_scale = 1.0F};
    network<weight> of_host, of_device;
    std::vector<gradient> d_first(size), d_second(size);
    Host host({{"first", of_host.first, d_first}, {"second", of_host.second, d_second}}, options);
    Device device(simulated{}, {{"first", of_device.first, d_first}, {"second", of_device.second, d_second}},
                  options);
    mp::static_loss_scaler host_scaler(policy);
    mp::gpu_loss_scaler device_scaler(simulated{}, policy);
    for (int step = 0; step < 4; ++step) {
        fill(d_first, step);
        fill(d_second, step + 1);
        if (step == 1) d_second[33] = large;
        if (max_norm > 0.0) device_scaler.clip_gradient_norm(device, max_norm);
        device_scaler.step(device);
        device_scaler.update();
        if (max_norm > 0.0) {
            host_scaler.unscale(host);
            host.clip_gradient_norm(max_norm);
        }
        const mp::step_result result = host_scaler.step(host);
        host_scaler.update();
        const mp::scale_event event = device_scaler.state().events().back();
        REQUIRE(event.applied == (result ? 1U : 0U));
        REQUIRE(event.skipped == host_scaler.last_event().skipped);
        if (!result) {
            CHECK(step == 1);
            CHECK(result.status == mp::step_status::skipped_too_large);
            CHECK(event.parameter == 1);
            CHECK(host_scaler.last_event().parameter == 1);
            CHECK(host_scaler.last_event().parameter_name.view() == "second");
        }
        // Gradients of type float are unscaled and clipped in place on the host, after the device has read them.
        CHECK(std::memcmp(of_host.first.data(), of_device.first.data(), size * sizeof(weight)) == 0);
        CHECK(std::memcmp(of_host.second.data(), of_device.second.data(), size * sizeof(weight)) == 0);
        for (const weight w : of_device.second) REQUIRE(std::isfinite(static_cast<float>(w)));
    }
}

template <class Host, class Device, class Options>
void check(const std::string& name, const Options& options) {
    for (const auto large : recovery::magnitudes<typename Host::gradient_type>(12)) {
        for (const double max_norm : {0.0, 1.0, 1e4}) {
            INFO(name << ", gradient " << static_cast<float>(large) << ", norm up to " << max_norm);
            check_one<Host, Device>(options, large, max_norm);
        }
    }
}

template <template <class, class, class, class> class Host, class Options>
void check_formats(const std::string& name, const Options& options) {
    const auto of = [&]<class W, class G, class M, class S>(const std::string& formats) {
        check<Host<W, G, M, S>, mp::gpu_grouped_optimizer<simulated, Options, W, G, M, S>>(name + formats,
                                                                                           options);
    };
    of.template operator()<float, float, float, float>(" float");
    of.template operator()<bfloat16, bfloat16, float, bfloat16>(" bfloat16");
    of.template operator()<half, float, float, float>(" half weights, float gradients");
    of.template operator()<half, half, half, half>(" half alone");
}

}  // namespace

TEST_CASE("AdamW on a GPU skips steps whose squares overflow the moments") {
    check_formats<mp::adamw>("adamw", mp::adamw_options{.learning_rate = 0.03, .weight_decay = 0.0});
}

TEST_CASE("SGD on a GPU skips steps that overflow momentum or weights") {
    check_formats<mp::sgd>("sgd", mp::sgd_options{.learning_rate = 0.03});
    check_formats<mp::sgd>("momentum", mp::sgd_options{.learning_rate = 0.03, .momentum = 0.9});
}

TEST_CASE("Lion on a GPU skips steps that overflow the momentum") {
    check_formats<mp::lion>("lion", mp::lion_options{.learning_rate = 0.03});
}

TEST_CASE("one norm over several optimizers clips excesses of all") {
    std::vector<float> w(size, 1.0F), v(size, 1.0F), dw(size, 1.0F), dv(size, 1.0F);
    std::vector<float> states(4 * size);
    using parameter = mp::gpu_parameter<float>;
    const auto part = [&](std::size_t i) { return std::span(states).subspan(i * size, size); };
    mp::gpu_optimizer first(
        simulated{},
        std::vector{parameter{
            .weights = w, .gradient = dw, .masters = w, .momentum = part(0), .mean_square = part(1)}},
        mp::adamw_options{});
    mp::gpu_optimizer second(
        simulated{},
        std::vector{parameter{
            .weights = v, .gradient = dv, .masters = v, .momentum = part(2), .mean_square = part(3)}},
        mp::adamw_options{});
    mp::gpu_loss_scaler scaler(simulated{}, mp::static_policy{.initial_scale = 1.0F});
    const auto run = [&](double max_norm) {
        scaler.clip_global_gradient_norm(max_norm, first, second);
        scaler.step(first);
        scaler.step(second);
        scaler.update();
        return scaler.state().events().back();
    };
    dv[3] = 1e20F;
    CHECK(run(1.0).skipped == 0);
    CHECK(run(1e30).skipped == 1);
    CHECK(run(1e30).parameter == 0);  // of its optimizer
    CHECK(run(1.0).skipped == 0);
    scaler.clip_gradient_norm(second, std::numeric_limits<double>::infinity());
    scaler.step(second);
    scaler.update();
    CHECK(scaler.state().events().back().skipped == 1);
    for (const float x : v) CHECK(std::isfinite(x));
}
