// SPDX-License-Identifier: MIT
#include <device/cuda/real_device.hpp>
#include <device/gpu/clip_checks.hpp>
#include <device/gpu/loss_scaling_checks.hpp>

#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/arrays/convert/convert.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using scale_on_device = mp::device_loss_scale<mp::pytorch_policy>;

TEST_CASE("unscale_and_check and check_gradients: values and findings are the CPU's") {
    gpu_test::real_device device;
    const std::vector<std::size_t> sizes{0, 1, 2, 3, 31, 4096, 100003, 5000001};
    for (const std::size_t shift : {0U, 1U, 4U}) {
        for (const int bad : {0, 1, 1000}) {
            gpu_test::check_unscale_list<mp::half>(device, sizes, shift, 0, 1.0F / 3.0F, bad);
            gpu_test::check_unscale_list<mp::bfloat16>(device, sizes, shift, shift, 0x1p-126F, bad);
            gpu_test::check_unscale_list<float>(device, sizes, shift, shift, 0x1p-16F, bad);
        }
    }
    gpu_test::check_unscale_list<mp::half>(device, std::vector<std::size_t>(300, 77), 0, 0, 0.5F, 2);
}

TEST_CASE("unscale_and_check: in place, and the first of several arrays wins whatever the order") {
    mp::unique_cuda_stream stream;
    const std::vector<scale_on_device> begin{mp::make_device_loss_scale(mp::pytorch_policy{})};
    mp::device_buffer<scale_on_device> state(stream, begin);
    std::vector<float> gradients(1000, 65536.0F);
    gradients[700] = std::numeric_limits<float>::infinity();
    gradients[800] = std::numeric_limits<float>::quiet_NaN();
    mp::device_buffer<float> values(stream, gradients);
    mp::unscale_and_check(stream, values, values, state.data(), 9);
    mp::unscale_and_check(stream, values, values, state.data(), 2);
    const std::vector<float> out = values.to_host(stream);
    CHECK(out[0] == 0x1p-16F);
    CHECK(mp::isinf(out[700]));
    const scale_on_device after = state.to_host(stream)[0];
    CHECK(after.seen.first_parameter() == 2);
    CHECK(after.seen.first_element() == 700);
    CHECK(after.seen.infinities == 2);
    CHECK(after.seen.nans == 2);
    CHECK(after.seen.checked == 2000);
}

TEST_CASE("clip_gradients: the device clips to the CPU's bits") {
    gpu_test::real_device device;
    const std::vector<std::size_t> sizes{0, 1, 2, 3, 31, 4096, 100003, 1000001};
    for (const std::size_t shift : {0U, 1U}) {
        gpu_test::check_clip<mp::half>(device, sizes, shift, 1.0F / 3.0F, 2.0);
        gpu_test::check_clip<float>(device, sizes, shift, 0x1p-16F, 1e9);
        gpu_test::check_clip<float>(device, sizes, shift, 1.0F, 0x1p-130);
        gpu_test::check_clip_of_spans<mp::bfloat16>(device, sizes, shift, 0.3F);
    }
    gpu_test::check_clip_of_spans<mp::half>(device, std::vector<std::size_t>(600, 77), 0, 0x1p-20F);
}

TEST_CASE("convert_and_observe: numbers and counts are the CPU's") {
    gpu_test::real_device device;
    const std::vector<std::size_t> sizes{0, 1, 33, 4096, 100003, 5000001};
    gpu_test::check_observe_list<float, mp::half>(device, sizes, 0, 0x1p-16F, 100.0);
    gpu_test::check_observe_list<float, mp::half>(device, sizes, 1, 1.0F / 3.0F, 8188.0);
    gpu_test::check_observe_list<mp::bfloat16, mp::float8_e5m2>(device, sizes, 1, 1.0F, 7168.0);
}

TEST_CASE("a captured iteration moves the scale and writes events as the host's function does") {
    mp::unique_cuda_stream stream;
    const mp::pytorch_policy policy{.initial_scale = 1024.0F, .growth_interval = 3};
    constexpr std::size_t kept = 8;
    using short_log = mp::device_loss_scale<mp::pytorch_policy, kept>;
    short_log expected = mp::make_device_loss_scale<kept>(policy);
    mp::device_buffer<short_log> state(stream, std::span<const short_log>(&expected, 1));
    std::vector<float> gradients(5000, 1.0F);
    std::vector<mp::half> halves(5000);
    mp::device_buffer<float> device_gradients(stream, gradients);
    mp::device_buffer<mp::half> device_halves(5000);
    mp::device_buffer<float> unscaled(5000);
    mp::synchronize(stream);

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t iteration = nullptr;
    mp::check_cuda(cudaStreamBeginCapture(stream.get().stream, cudaStreamCaptureModeGlobal),
                   "cudaStreamBeginCapture");
    mp::convert_and_observe(stream, device_gradients, device_halves, state.data(), 1.5);
    mp::unscale_and_check(stream, device_halves, unscaled, state.data(), 3);
    mp::update_scale(stream, policy, state.data());
    mp::check_cuda(cudaStreamEndCapture(stream.get().stream, &graph), "cudaStreamEndCapture");
    mp::check_cuda(cudaGraphInstantiate(&iteration, graph, 0), "cudaGraphInstantiate");
    for (int i = 0; i < 20; ++i) {
        const bool bad = i % 7 == 4;
        gradients[77] = bad ? 65536.0F : 2.0F;
        gradients[78] = i % 2 == 0 ? 1e-9F : 1e-6F;
        device_gradients.copy_from(stream, gradients);
        mp::check_cuda(cudaGraphLaunch(iteration, stream.get().stream), "cudaGraphLaunch");
        mp::convert(mp::cpu{}, gradients, halves);
        gpu_test::observe_by_double(gradients, halves, expected.inverse_scale, 1.5, expected.seen);
        expected.seen.checked = gradients.size();
        if (bad) {
            expected.seen.infinities = 1;
            expected.seen.first = mp::detail::gradient_location(3, 77);
        }
        mp::detail::end_iteration(mp::detail::rules_of(policy), expected);
        const short_log now = state.to_host(stream)[0];
        CHECK(now.state == expected.state);
        CHECK(now.inverse_scale == expected.inverse_scale);
        CHECK(now.change == expected.change);
        CHECK(now.previous == expected.previous);
        CHECK(now.seen == expected.seen);
        CHECK(now.iterations == expected.iterations);
        CHECK(now.updates == expected.updates);
        CHECK(now.skipped == expected.skipped);
        CHECK(now.failed == expected.failed);
        CHECK(now.events() == expected.events());
    }
    CHECK(expected.events().size() == kept);
    CHECK(expected.skipped == 3);
    mp::check_cuda(cudaGraphExecDestroy(iteration), "cudaGraphExecDestroy");
    mp::check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

template <class Policy>
__global__ void skips_kernel(Policy policy, const mp::device_loss_scale<Policy>* scale, bool* skips) {
    *skips = scale->skips(policy);
}

/// A policy whose kernel updates the scale as the host does, over a random run.
template <class Policy>
void check_policy(const Policy& policy, unsigned seed) {
    using loss_scale = mp::device_loss_scale<Policy>;
    mp::unique_cuda_stream stream;
    loss_scale expected = mp::make_device_loss_scale(policy);
    mp::device_buffer<loss_scale> state(stream, std::span<const loss_scale>(&expected, 1));
    mp::device_buffer<bool> skips(1);
    std::mt19937 random(seed);
    for (int i = 0; i < 300; ++i) {
        mp::device_gradient_report& seen = expected.seen;
        if (random() % 20 != 0) {
            seen.checked = 10;
            seen.infinities = random() % 8 == 0 ? 2 : 0;
            seen.nans = random() % 16 == 0 ? 1 : 0;
        }
        seen.values = 1000;
        seen.flushed = random() % 3;
        seen.large = random() % 2;
        mp::check_cuda(cudaMemcpyAsync(&state.data()->seen, &seen, sizeof seen, cudaMemcpyHostToDevice,
                                       stream.get().stream),
                       "cudaMemcpyAsync");
        skips_kernel<<<1, 1, 0, stream.get().stream>>>(policy, state.data(), skips.data());
        bool skipped = false;
        skips.copy_to(stream, std::span<bool>(&skipped, 1));
        mp::update_scale(stream, policy, state.data());
        mp::synchronize(stream);
        REQUIRE(skipped == expected.skips(policy));
        mp::detail::end_iteration(mp::detail::rules_of(policy), expected);
    }
    const loss_scale now = state.to_host(stream)[0];
    CAPTURE(seed);
    CHECK(now.state == expected.state);
    CHECK(now.inverse_scale == expected.inverse_scale);
    CHECK(now.iterations == 300);
    CHECK(now.updates == expected.updates);
    CHECK(now.skipped == expected.skipped);
    CHECK(now.failed == expected.failed);
    CHECK(now.events() == expected.events());
}

TEST_CASE("update_scale: every policy on the device, to the bit") {
    check_policy(mp::pytorch_policy{.initial_scale = 3.0F, .growth_factor = 1.7, .growth_interval = 3}, 1);
    check_policy(mp::sharded_pytorch_policy{.growth_interval = 3}, 2);
    check_policy(mp::tensorflow_policy{.dynamic_growth_steps = 4}, 3);
    check_policy(mp::keras_policy{.dynamic_growth_steps = 4}, 4);
    check_policy(mp::jmp_policy{.period = 3, .factor = 3}, 5);
    check_policy(mp::apex_policy{.scale_window = 3}, 6);
    check_policy(mp::apex_fp16_utils_policy{.scale_factor = 1.5, .scale_window = 4}, 7);
    check_policy(mp::apex_hysteresis_policy{.growth_interval = 4}, 8);
    check_policy(mp::mxnet_policy{.scale_factor = 1.25, .scale_window = 3}, 9);
    check_policy(mp::deepspeed_policy{.loss_scale_window = 4}, 10);
    check_policy(mp::deepspeed_fused_policy{.loss_scale_window = 3}, 11);
    check_policy(mp::megatron_policy{.growth_factor = 1.9F, .growth_interval = 3}, 12);
    check_policy(mp::fairseq_policy{.scale_window = 5, .tolerance = 0.05}, 13);
    check_policy(mp::openseq2seq_policy{.step_factor = 3.0F, .step_window = 3}, 14);
    check_policy(mp::chainer_policy{.interval = 7}, 15);
    check_policy(mp::dynamic_policy<mp::growth_on_underflow>{.growth = {.patience = 2, .rest = 3}}, 16);
    check_policy(mp::histogram_policy{.update_period = 2}, 17);
    check_policy(mp::static_policy{.initial_scale = 8.0F, .skip_non_finite = false}, 18);
}

TEST_CASE("device_buffer, streams and events") {
    mp::unique_cuda_stream first;
    mp::unique_cuda_stream second;
    const std::vector<int> numbers{1, 2, 3};
    mp::device_buffer<int> a(first, numbers);
    mp::cuda_event begin;
    mp::cuda_event end;
    begin.record(first);
    end.record(first);
    end.block(second);
    CHECK(a.to_host(second) == numbers);
    CHECK(mp::milliseconds_between(begin, end) >= 0.0F);
    mp::device_buffer<int> b(std::move(a));
    CHECK(a.empty());
    CHECK(a.data() == nullptr);
    CHECK(b.size() == 3);
    b.fill_bytes(first, 0);
    CHECK(b.to_host(first) == std::vector<int>(3));
    mp::unique_cuda_stream moved(std::move(second));
    CHECK(b.to_host(moved) == std::vector<int>(3));
    CHECK_THROWS_AS(mp::device_buffer<char>(std::size_t{1} << 60), mp::cuda_error);
    CHECK_NOTHROW(mp::convert(first, std::span<const float>{}, std::span<mp::half>{}));
}

/// Turns the order of 64 numbers around, by way of more shared memory than a kernel has unless that is said.
struct turn_around_kernel {
    static constexpr int threads = 64;
    static constexpr std::size_t shared_bytes = 60 << 10;
    int* values;

    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const mp::simt::shared_pointer<int> room{static_cast<std::uint32_t>(shared_bytes - 256)};
        const int i = thread.index();
        thread.store(room + i, thread.load(values + i));
        thread.sync_block();
        thread.store(values + i, thread.load(room + (threads - 1 - i)));
    }
};

TEST_CASE("launches that need much shared memory work again when the device has been reset") {
    std::vector<int> numbers(64), turned(64);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::iota(turned.rbegin(), turned.rend(), 0);
    static_cast<void>(cudaGetLastError());  // of other tests
    for (const bool reset : {false, true}) {
        if (reset) mp::check_cuda(cudaDeviceReset(), "cudaDeviceReset");
        mp::unique_cuda_stream stream;
        mp::device_buffer<int> buffer(stream, numbers);
        const mp::simt::launch_size size{.blocks = 1, .shared_bytes = turn_around_kernel::shared_bytes};
        launch("turn_around", stream.get(), size, turn_around_kernel{buffer.data()});
        CHECK(buffer.to_host(stream) == turned);
        CHECK(cudaPeekAtLastError() == cudaSuccess);
    }
}

TEST_SUITE_BEGIN("no device needed");

/// The message of what `f` throws.
template <class Error, class Function>
std::string message(Function f) {
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing";
}

TEST_CASE("errors of the runtime name call, text and code") {
    CHECK_NOTHROW(mp::check_cuda(cudaSuccess, "cudaMalloc"));
    try {
        mp::check_cuda(cudaErrorMemoryAllocation, "cudaMalloc");
        FAIL("nothing was thrown");
    } catch (const mp::cuda_error& error) {
        CHECK(std::string(error.what()) == "cudaMalloc: out of memory (cudaErrorMemoryAllocation, 2)");
        CHECK(error.call() == "cudaMalloc");
        CHECK(error.code() == cudaErrorMemoryAllocation);
    }
}

TEST_CASE("convert: arguments that make no sense") {
    const mp::cuda_stream stream;
    float values[8] = {};
    mp::half halves[8] = {};
    using mp::argument_error;
    CHECK(message<argument_error>([&] {
              mp::convert(stream, std::span<const float>(values, 8), std::span(halves, 7));
          }) == "mp::convert: to.size() is 7; it must equal from.size(), which is 8");
    CHECK_THROWS_AS(
        mp::convert(stream, std::span<const float>(values, 8), std::span(static_cast<mp::half*>(nullptr), 8)),
        argument_error);
    CHECK_THROWS_AS(
        mp::convert(stream, std::span<const float>(static_cast<float*>(nullptr), 8), std::span(halves)),
        argument_error);
    CHECK_THROWS_AS(mp::convert(stream, std::span<const float>(values), std::span(values)), argument_error);
}

TEST_CASE("unscale_and_check and update_scale: arguments that make no sense") {
    const mp::cuda_stream stream;
    float values[8] = {};
    mp::half halves[8] = {};
    scale_on_device state = mp::make_device_loss_scale(mp::pytorch_policy{});
    scale_on_device* const none = nullptr;
    using mp::argument_error;
    const std::span<const mp::half> gradients(halves);
    CHECK(message<argument_error>([&] {
              mp::unscale_and_check(stream, gradients, std::span(values, 7), &state);
          }) == "mp::unscale_and_check: unscaled.size() is 7; it must equal gradients.size(), which is 8");
    CHECK(message<argument_error>([&] {
              mp::unscale_and_check(stream, gradients, std::span(values), none);
          }) == "mp::unscale_and_check: scale is null; it must point to memory, for the size is 1");
    CHECK_THROWS_AS(mp::unscale_and_check(stream, gradients, std::span(values), nullptr, &state.seen),
                    argument_error);
    CHECK_THROWS_AS(
        mp::unscale_and_check(stream, gradients, std::span(values), &state.inverse_scale, nullptr),
        argument_error);
    CHECK_THROWS_AS(mp::unscale_and_check(stream, gradients, std::span(values), &state, std::size_t{1} << 20),
                    argument_error);
    CHECK_THROWS_AS(
        mp::unscale_and_check(stream, gradients, std::span(static_cast<float*>(nullptr), 8), &state),
        argument_error);
    CHECK_THROWS_AS(mp::unscale_and_check(stream, std::span(values, 7), std::span(values + 1, 7), &state),
                    argument_error);
    CHECK_THROWS_AS(mp::update_scale(stream, mp::pytorch_policy{}, none), argument_error);
    CHECK_THROWS_AS(mp::update_scale(stream, mp::pytorch_policy{.growth_interval = 0}, &state),
                    argument_error);
}

TEST_CASE("convert_and_observe: arguments that make no sense") {
    const mp::cuda_stream stream;
    float values[8] = {};
    mp::half halves[8] = {};
    scale_on_device state = mp::make_device_loss_scale(mp::pytorch_policy{});
    scale_on_device* const none = nullptr;
    using mp::argument_error;
    const std::span<const float> from(values);
    const std::span<mp::half> to(halves);
    CHECK(message<argument_error>([&] { mp::convert_and_observe(stream, from, to.first(7), &state); }) ==
          "mp::convert_and_observe: to.size() is 7; it must equal from.size(), which is 8");
    CHECK(message<argument_error>([&] { mp::convert_and_observe(stream, from, to, &state, -1.0); }) ==
          "mp::convert_and_observe: edge is -1; it must not be negative");
    CHECK_THROWS_AS(mp::convert_and_observe(stream, from, to, none), argument_error);
    CHECK_THROWS_AS(mp::convert_and_observe(stream, from, to, nullptr, &state.seen), argument_error);
    CHECK_THROWS_AS(mp::convert_and_observe(stream, from, to, &state.inverse_scale, nullptr), argument_error);
    CHECK_NOTHROW(mp::convert_and_observe(stream, from.first(0), to.first(0), &state));
}

TEST_CASE("device_buffer: sizes that make no sense") {
    mp::device_buffer<float> empty;
    CHECK(empty.empty());
    CHECK_NOTHROW(empty.copy_from({}, {}));
    const std::vector<float> one(1);
    CHECK_THROWS_AS(empty.copy_from({}, one), mp::argument_error);
    CHECK_THROWS_AS(mp::device_buffer<double>(std::size_t{1} << 62), mp::argument_error);
}

TEST_SUITE_END();

}  // namespace
