// SPDX-License-Identifier: MIT
// The code of docs/gpu.md and docs/autocast.md that is for CUDA: it compiles, and where a device is, it runs.
#include <mp/cuda.hpp>
#include <mp/mp.hpp>

#include <cstdio>
#include <span>
#include <sstream>
#include <vector>

#include <doctest/doctest.h>

namespace {

TEST_CASE("numbers are printed by the host without a warning about the device") {
    std::ostringstream text;
    text << mp::half(1.5F) << ' ' << mp::float8_e4m3fn(-448.0F);
    CHECK(text.str() == "1.5 -448");
}

template <class Value>
mp::device_buffer<Value> filled(const mp::cuda_stream& stream, std::size_t size, float value) {
    return mp::device_buffer<Value>(stream, std::vector<Value>(size, Value(value)));
}

TEST_CASE("docs/gpu.md: a product") {
    const std::ptrdiff_t m = 64, n = 64, k = 64;
    const mp::cuda_stream of_buffers{};
    const auto a = filled<mp::half>(of_buffers, 4096, 1.0F), b = filled<mp::half>(of_buffers, 4096, 0.5F);
    auto c = filled<float>(of_buffers, 4096, 0.0F);
    const auto a_view = mp::row_major(a, m, k), b_view = mp::row_major(b, k, n);
    const auto c_view = mp::row_major(c, m, n);
#include "gpu_1.inl"
    CHECK(c.to_host(stream)[0] == 32.0F);
}

TEST_CASE("docs/gpu.md: a training step") {
    const mp::unique_cuda_stream stream;
    auto weights = filled<mp::half>(stream, 64, 1.0F), gradients = filled<mp::half>(stream, 64, 1.0F);
    auto masters = filled<float>(stream, 64, 1.0F), first = filled<float>(stream, 64, 0.0F),
         second = filled<float>(stream, 64, 0.0F);
    const std::vector<mp::gpu_parameter<mp::half>> parameters{
        {weights.span(), gradients.span(), masters.span(), first.span(), second.span()}};
    const auto backward = [](const auto&) {};
#include "gpu_2.inl"
    CHECK(weights.to_host(stream)[0] < 1.0F);
}

/// A model that does nothing: its gradients stay zero.
struct idle_model {
    void forward(const mp::cuda_stream&, std::span<const int>) {}
    template <class Scale>
    void backward(const mp::cuda_stream&, const float*, const Scale&) {}
};

TEST_CASE("docs/gpu.md: a captured step") {
    mp::parameter_store<mp::bfloat16> store;
    mp::parameter_store<float> store_of_norms;
    static_cast<void>(store.add_matrix("w", 8, 8, mp::initializers::ones()));
    static_cast<void>(store_of_norms.add_vector("gamma", 8, mp::initializers::ones()));
    const mp::adamw_options decayed{.learning_rate = 0.01, .weight_decay = 0.1}, plain{.learning_rate = 0.01};
    const std::size_t batch = 2, context = 4, steps = 3;
    const std::uint64_t seed = 1, words_of_a_step = 8;
    idle_model model;
    const auto draw = [](std::span<int> ids, std::uint64_t) { ids[0] = 1; };
    const mp::linear_warmup schedule{.steps = 2};
    const auto print = [](const auto&) {};
    const auto everything = [](auto&) {};
#include "gpu_3.inl"
    CHECK(log.read().size() == steps);
}

TEST_CASE("docs/autocast.md: a layer on a stream") {
    const mp::cuda_stream of_buffers{};
    const auto x_values = filled<float>(of_buffers, 64 * 64, 1.0F),
               w_values = filled<float>(of_buffers, 64 * 64, 0.5F), b = filled<float>(of_buffers, 64, 1.0F);
    auto y_values = filled<float>(of_buffers, 64 * 64, 0.0F);
    const auto x = mp::row_major(x_values, 64, 64), w = mp::row_major(w_values, 64, 64);
    const auto y = mp::row_major(y_values, 64, 64);
    mp::synchronize(of_buffers);  // the stream below does not wait for this one
#include "autocast_2.inl"
    CHECK(y_values.to_host(stream)[0] == 33.0F);
}

}  // namespace
