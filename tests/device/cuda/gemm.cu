// SPDX-License-Identifier: MIT
#include <mp/cuda.hpp>

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/tensor_core.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "larger_error.hpp"

/// How many tensor maps have been encoded, where the interpreter of tests/ptx is the device.
extern "C" __attribute__((weak)) long mp_interpreted_tensor_maps();

namespace {

using generator = std::mt19937;

constexpr mp::storage_order orders[2] = {mp::storage_order::row_major, mp::storage_order::column_major};

/// A matrix on the host and the same one on the device, with NaN in the padding.
template <class Value>
struct matrix {
    std::vector<Value> values;
    mp::device_buffer<Value> on_device;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t leading;
    std::ptrdiff_t shift;
    mp::storage_order order;

    template <class Draw>
    matrix(mp::cuda_stream stream, std::ptrdiff_t r, std::ptrdiff_t c, mp::storage_order o, bool aligned,
           Draw draw)
        : rows(r), columns(c), shift(aligned ? 0 : 3), order(o) {
        const std::ptrdiff_t length = o == mp::storage_order::row_major ? c : r;
        leading = length + (aligned ? (16 - length % 16) % 16 : 1);
        values.resize(
            static_cast<std::size_t>(shift + leading * (o == mp::storage_order::row_major ? r : c)));
        std::memset(static_cast<void*>(values.data()), 0xFF, values.size() * sizeof(Value));
        for (std::ptrdiff_t i = 0; i < r; ++i) {
            for (std::ptrdiff_t j = 0; j < c; ++j) host()(i, j) = Value(draw());
        }
        on_device = mp::device_buffer<Value>(stream, values);
    }
    [[nodiscard]] mp::matrix_view<Value> host() {
        return {values.data() + shift, rows, columns, leading, order};
    }
    [[nodiscard]] mp::matrix_view<Value> device() {
        return {on_device.data() + shift, rows, columns, leading, order};
    }
};

struct problem {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
    float alpha = 1;
    float beta = 0;
};

/// Multiplies matrices of small integers, whose sums are exact in any order, on the device and on the CPU,
/// and compares all bits of C, its padding included.
template <class Input, class Output, class Epilogue>
void check_exact(generator& random, const problem& p, mp::storage_order a_order, mp::storage_order b_order,
                 mp::storage_order c_order, bool aligned, Epilogue make_epilogue) {
    mp::unique_cuda_stream stream;
    const auto draw = [&] { return static_cast<float>(std::uniform_int_distribution<int>(-3, 3)(random)); };
    matrix<Input> a(stream, p.rows, p.k, a_order, aligned, draw);
    matrix<Input> b(stream, p.k, p.columns, b_order, aligned, draw);
    matrix<Output> c(stream, p.rows, p.columns, c_order, aligned, draw);
    std::vector<float> bias(static_cast<std::size_t>(p.columns));
    for (float& value : bias) value = draw();
    const mp::device_buffer<float> device_bias(stream, bias);
    mp::gemm(stream.get(), p.alpha, a.device(), b.device(), p.beta, c.device(),
             make_epilogue(device_bias.span()));
    mp::gemm(mp::cpu{}, p.alpha, a.host(), b.host(), p.beta, c.host(),
             make_epilogue(std::span<const float>(bias)));
    const std::vector<Output> actual = c.on_device.to_host(stream);
    CAPTURE(p.rows);
    CAPTURE(p.columns);
    CAPTURE(p.k);
    CAPTURE(aligned);
    CHECK(std::memcmp(actual.data(), c.values.data(), actual.size() * sizeof(Output)) == 0);
}

const auto plain = [](std::span<const float>) { return mp::identity_epilogue{}; };
const auto bias_relu = [](std::span<const float> bias) {
    return mp::compose(mp::bias_per_column(bias), mp::relu_epilogue{});
};

template <class Function>
void for_all_orders(Function f) {
    for (const auto a : orders) {
        for (const auto b : orders) {
            for (const auto c : orders) f(a, b, c);
        }
    }
}

TEST_CASE("gemm: integers come out exactly, for all layouts, alignments and sizes") {
    generator random(1);
    const auto size = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
    for (int round = 0; round < 12; ++round) {
        for_all_orders([&](auto a, auto b, auto c) {
            problem p{size(200), size(200), size(200)};
            if (round % 3 == 1) p.alpha = -0.5F;
            if (round % 3 == 2) p.beta = 2.0F;
            check_exact<mp::half, float>(random, p, a, b, c, round % 2 == 0, plain);
            check_exact<mp::bfloat16, mp::bfloat16>(random, p, a, b, c, round % 2 == 0, bias_relu);
        });
    }
    // Large tiles: whole ones, and with edges on all sides.
    for_all_orders([&](auto a, auto b, auto c) {
        check_exact<mp::half, float>(random, {1536, 1408, 64}, a, b, c, true, plain);
        check_exact<mp::bfloat16, mp::bfloat16>(random, {1500, 1411, 75}, a, b, c, true, bias_relu);
        check_exact<mp::bfloat16, mp::bfloat16>(random, {1411, 1500, 33}, a, b, c, false, bias_relu);
    });
    check_exact<mp::half, float>(random, {1, 100000, 1}, orders[0], orders[0], orders[0], true, plain);
    check_exact<mp::half, float>(random, {100000, 1, 7}, orders[0], orders[0], orders[0], true, plain);
    check_exact<mp::half, float>(random, {1, 1, 100000}, orders[0], orders[0], orders[0], true, plain);
}

TEST_CASE("gemm: empty sizes, and what is not read") {
    generator random(2);
    check_exact<mp::half, float>(random, {5, 7, 0, 1.0F, 2.0F}, orders[0], orders[0], orders[0], true, plain);
    check_exact<mp::half, float>(random, {5, 7, 0}, orders[0], orders[0], orders[0], true, plain);
    mp::unique_cuda_stream stream;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    matrix<mp::half> a(stream, 40, 20, orders[0], true, [] { return 1.0F; });
    matrix<mp::half> b(stream, 20, 40, orders[0], true, [] { return 1.0F; });
    matrix<mp::half> bad(stream, 20, 40, orders[0], true, [&] { return nan; });
    matrix<float> c(stream, 40, 40, orders[0], true, [&] { return nan; });
    mp::gemm(stream.get(), 1.0F, a.device(), b.device(), 0.0F, c.device());
    CHECK(c.on_device.to_host(stream)[0] == 20.0F);
    mp::gemm(stream.get(), 0.0F, a.device(), bad.device(), 0.5F, c.device());
    const auto second = static_cast<std::size_t>(c.leading) + 1;  // of the second row
    CHECK(c.on_device.to_host(stream)[second] == 10.0F);
    mp::gemm(stream.get(), 1.0F, a.device(), bad.device(), 1.0F, c.device());
    CHECK(mp::isnan(c.on_device.to_host(stream)[second]));
    CHECK_NOTHROW(mp::gemm(stream.get(), 1.0F, a.device().block(0, 0, 0, 20), b.device(), 0.0F,
                           c.device().block(0, 0, 0, 40)));
}

template <class Input>
void check_bound(std::ptrdiff_t k) {
    generator random(3);
    mp::unique_cuda_stream stream;
    const auto draw = [&] { return std::normal_distribution<float>()(random); };
    matrix<Input> a(stream, 65, k, orders[0], true, draw);
    matrix<Input> b(stream, k, 66, orders[0], true, draw);
    matrix<float> c(stream, 65, 66, orders[0], true, draw);
    mp::gemm(stream.get(), 1.0F, a.device(), b.device(), 0.0F, c.device());
    c.values = c.on_device.to_host(stream);
    double worst = 0;
    for (std::ptrdiff_t i = 0; i < 65; ++i) {
        for (std::ptrdiff_t j = 0; j < 66; ++j) {
            double sum = 0;
            double magnitudes = 0;
            for (std::ptrdiff_t p = 0; p < k; ++p) {
                const double product =
                    static_cast<double>(a.host()(i, p)) * static_cast<double>(b.host()(p, j));
                sum += product;
                magnitudes += std::fabs(product);
            }
            const double bound = 1.4 * static_cast<double>(k + 8) * 0x1p-24 * magnitudes;
            worst = tests::larger_error(worst, std::fabs(static_cast<double>(c.host()(i, j)) - sum) / bound);
        }
    }
    CAPTURE(k);
    CHECK(worst <= 1.0);
}

TEST_CASE("gemm: random numbers stay within the bound that is documented") {
    for (const std::ptrdiff_t k : {1, 16, 100, 1000, 20000}) {
        check_bound<mp::half>(k);
    }
}

TEST_CASE("gemm: the bits do not depend on the tile") {
    generator random(4);
    mp::unique_cuda_stream stream;
    const auto draw = [&] { return std::normal_distribution<float>()(random); };
    matrix<mp::half> a(stream, 1500, 300, orders[0], true, draw);
    matrix<mp::half> b(stream, 300, 1500, orders[1], true, draw);
    matrix<float> whole(stream, 1500, 1500, orders[0], true, draw);
    matrix<float> parts(stream, 1500, 1500, orders[0], true, draw);
    mp::gemm(stream.get(), 1.0F, a.device(), b.device(), 0.0F, whole.device());
    for (std::ptrdiff_t row = 0; row < 1500; row += 301) {
        const std::ptrdiff_t rows = std::min<std::ptrdiff_t>(301, 1500 - row);
        mp::gemm(stream.get(), 1.0F, a.device().block(row, 0, rows, 300), b.device(), 0.0F,
                 parts.device().block(row, 0, rows, 1500));
    }
    const auto one = whole.on_device.to_host(stream);
    const auto other = parts.on_device.to_host(stream);
    std::size_t different = 0;
    for (std::ptrdiff_t i = 0; i < 1500; ++i) {
        const auto place = static_cast<std::size_t>(i * whole.leading);
        different += std::memcmp(&one[place], &other[place], 1500 * sizeof(float)) != 0 ? 1u : 0u;
    }
    CHECK(different == 0);
}

/// The model of the architecture that the kernels were compiled for.
template <class A, class B, class C>
void gemm_on_model(const mp::gpu_gemm_plan& plan, mp::matrix_view<A> a, mp::matrix_view<B> b,
                   mp::matrix_view<C> c) {
    const int capability = plan.gpu.capability;
    const auto by = [&]<mp::arch Arch>() {
        if constexpr (mp::block_rule_of(Arch, mp::detail::operand_kind_of<A>, false).products != 0) {
            const auto unit = mp::has_float8_through_half(Arch) && plan.kernel != mp::gpu_gemm_kernel::wgmma
                                  ? mp::float8_unit::through_half
                                  : mp::float8_unit::native;
            mp::gemm(mp::emulated<Arch>{.threads = 8, .float8 = unit}, 1.0F, a, b, 0.0F, c);
        } else {
            mp::gemm(mp::cpu{.products = mp::accumulation::ordered}, 1.0F, a, b, 0.0F, c);
        }
    };
    if (capability >= 120) return by.template operator()<mp::arch::sm_120>();
    if (capability >= 100) return by.template operator()<mp::arch::sm_100>();
    if (capability >= 90) return by.template operator()<mp::arch::sm_90>();
    if (capability >= 89) return by.template operator()<mp::arch::sm_89>();
    if (capability >= 80) return by.template operator()<mp::arch::sm_80>();
    return by.template operator()<mp::arch::sm_75>();
}

const std::vector<problem> large_problems{problem{64, 64, 64}, problem{300, 270, 1000},
                                          problem{1100, 1300, 129}, problem{1, 77, 4099}};

/// Has warpgroups take turns with tiles, of which a cluster has several, where a plan is for wgmma.
void take_turns(mp::gpu_gemm_plan& plan) {
    if (plan.kernel != mp::gpu_gemm_kernel::wgmma) return;
    plan.gpu.multiprocessors = 2;
    plan.tile_rows = 64;
    plan.tile_columns = 256;
    plan.cluster_blocks = 2;
    plan.swapped = false;
    plan.ping_pong = true;
}

/// Compares all bits of products of random numbers with the model; with some infinities among them, of which
/// products become NaN.
template <class Input, class Output, mp::gpu_gemm_kernel Kernel = mp::gpu_gemm_kernel::automatic>
void check_model(const std::vector<problem>& problems = large_problems, bool infinities = false,
                 bool turns = false) {
    generator random(9);
    mp::unique_cuda_stream stream;
    int count = 0;
    const auto draw = [&] {
        const float x = std::normal_distribution<float>()(random);
        return infinities && ++count % 1500 == 0 ? x * std::numeric_limits<float>::infinity() : x;
    };
    for (const auto& [rows, columns, k, alpha, beta] : problems) {
        for_all_orders([&](auto a_order, auto b_order, auto c_order) {
            for (const bool aligned : {true, false}) {
                if (turns && !aligned) continue;
                matrix<Input> a(stream, rows, k, a_order, aligned, draw);
                matrix<Input> b(stream, k, columns, b_order, aligned, draw);
                matrix<Output> c(stream, rows, columns, c_order, aligned, draw);
                auto plan = mp::plan_gemm<Kernel>(stream.get(), a.device(), b.device());
                if (turns) take_turns(plan);
                mp::gemm<Kernel>(stream.get(), plan, alpha, a.device(), b.device(), beta, c.device());
                gemm_on_model(plan, a.host(), b.host(), c.host());
                const std::vector<Output> actual = c.on_device.to_host(stream);
                const std::string name = plan.kernel_name();
                CAPTURE(name);
                CAPTURE(rows);
                CAPTURE(columns);
                CAPTURE(k);
                CAPTURE(aligned);
                CHECK(std::memcmp(actual.data(), c.values.data(), actual.size() * sizeof(Output)) == 0);
            }
        });
    }
}

TEST_CASE("gemm: the bits are those of the model of the device's tensor cores") {
    check_model<mp::half, float>();
    check_model<mp::tfloat32, float>();
    check_model<mp::float8_e4m3fn, mp::half>();
}

TEST_CASE("gemm: so are those of wgmma, where the device has it") {
    constexpr auto kernel = mp::gpu_gemm_kernel::prefer_wgmma;
    check_model<mp::half, float, kernel>();
    check_model<mp::bfloat16, mp::bfloat16, kernel>();
    check_model<mp::tfloat32, float, kernel>();
    check_model<mp::float8_e4m3fn, mp::half, kernel>();
}

TEST_CASE("gemm: small products by any kernel have the bits of the model") {
    const std::vector<problem> problems{problem{128, 64, 64}, problem{150, 270, 100}, problem{7, 135, 1000},
                                        problem{33, 70, 100}};
    constexpr auto kernel = mp::gpu_gemm_kernel::prefer_wgmma;
    check_model<mp::half, float>(problems, true);
    check_model<mp::float8_e4m3fn, mp::half>(problems, true);
    check_model<mp::half, float, kernel>(problems, true);
    check_model<mp::bfloat16, mp::bfloat16, kernel>(problems, true);
    check_model<mp::tfloat32, float, kernel>(problems, true);
    check_model<mp::float8_e4m3fn, mp::half, kernel>(problems, true);
}

TEST_CASE("gemm: warpgroups that take turns have the bits of the model") {
    constexpr auto kernel = mp::gpu_gemm_kernel::prefer_wgmma;
    check_model<mp::half, float, kernel>({problem{133, 70, 200}}, true, true);
    check_model<mp::bfloat16, mp::bfloat16, kernel>({problem{200, 270, 136}}, false, true);
}

TEST_CASE("gemm: warpgroups that take turns have the same bits in slices of k and in batches") {
    constexpr auto kernel = mp::gpu_gemm_kernel::prefer_wgmma;
    constexpr std::ptrdiff_t rows = 200, columns = 40, k = 328, count = 2;
    generator random(11);
    mp::unique_cuda_stream stream;
    const auto draw = [&] { return std::normal_distribution<float>()(random); };
    matrix<mp::half> a(stream, rows * count, k, orders[0], true, draw);
    matrix<mp::half> b(stream, k, columns * count, orders[1], true, draw);
    const mp::matrix_batch<const mp::half> left{a.device().block(0, 0, rows, k), rows * a.leading};
    const mp::matrix_batch<const mp::half> right{b.device().block(0, 0, k, columns), columns * b.leading};
    const auto product = [&](int splits, bool turns) {
        auto plan = mp::plan_gemm<kernel>(stream.get(), count, left, right, {.splits = splits});
        if (turns) take_turns(plan);
        mp::device_buffer<float> c(stream, std::vector<float>(rows * columns * count));
        mp::device_buffer<float> workspace(plan.workspace_size());
        mp::gemm_batched<kernel>(
            stream.get(), plan, 1.0F, left, right, 0.0F,
            mp::matrix_batch<float>{mp::row_major(c.data(), rows, columns), rows * columns},
            mp::identity_epilogue{}, workspace.span());
        return c.to_host(stream);
    };
    for (const int splits : {1, 2, 4}) {
        const auto turns = product(splits, true);
        const auto together = product(splits, false);
        CAPTURE(splits);
        CHECK(std::memcmp(turns.data(), together.data(), turns.size() * sizeof(float)) == 0);
    }
}

/// Multiplies small integers with second outputs on the device and on the CPU, and compares everything.
template <mp::gpu_gemm_kernel Kernel>
void check_second_outputs(generator& random, const problem& p, mp::storage_order c_order,
                          mp::storage_order order, bool aligned, bool turns = false) {
    mp::unique_cuda_stream stream;
    const auto draw = [&] { return static_cast<float>(std::uniform_int_distribution<int>(-3, 3)(random)); };
    matrix<mp::bfloat16> a(stream, p.rows, p.k, orders[0], aligned, draw);
    matrix<mp::bfloat16> b(stream, p.k, p.columns, orders[1], aligned, draw);
    matrix<mp::float8_e4m3fn> c(stream, p.rows, p.columns, c_order, aligned, draw);
    matrix<mp::bfloat16> before(stream, p.rows, p.columns, order, aligned, draw);
    matrix<mp::bfloat16> other(stream, p.rows, p.columns, order, aligned, draw);
    std::vector<float> bias(static_cast<std::size_t>(p.columns));
    for (float& value : bias) value = draw();
    const std::vector<float> scale(1, 0.7F);
    const mp::device_buffer<float> device_bias(stream, bias);
    const mp::device_buffer<float> device_scale(stream, scale);
    mp::device_buffer<float> device_amax(stream, std::vector<float>(1, 0.0F));
    float amax = 0;
    const auto layer = [](std::span<const float> terms, mp::matrix_view<mp::bfloat16> to,
                          mp::matrix_view<mp::bfloat16> from, float* largest, const float* factor) {
        return mp::compose(
            mp::compose(mp::compose(mp::bias_per_column(terms), mp::store_auxiliary(to)), mp::dgelu(from)),
            mp::compose(mp::compose(mp::silu_epilogue{}, mp::amax_into(largest)),
                        mp::quantize_to<mp::float8_e4m3fn>(factor)));
    };
    auto plan = mp::plan_gemm<Kernel>(stream.get(), a.device(), b.device());
    if (turns) take_turns(plan);
    mp::gemm<Kernel>(
        stream.get(), plan, p.alpha, a.device(), b.device(), p.beta, c.device(),
        layer(device_bias.span(), before.device(), other.device(), device_amax.data(), device_scale.data()));
    mp::gemm(mp::cpu{}, p.alpha, a.host(), b.host(), p.beta, c.host(),
             layer(bias, before.host(), other.host(), &amax, scale.data()));
    const auto codes = c.on_device.to_host(stream);
    const auto values = before.on_device.to_host(stream);
    CAPTURE(p.rows);
    CAPTURE(p.columns);
    CAPTURE(aligned);
    CHECK(std::memcmp(codes.data(), c.values.data(), codes.size()) == 0);
    CHECK(std::memcmp(values.data(), before.values.data(), values.size() * sizeof(mp::bfloat16)) == 0);
    CHECK(device_amax.to_host(stream)[0] == amax);
}

TEST_CASE("gemm: second outputs by any kernel have the bits of the CPU") {
    generator random(9);
    constexpr auto mma = mp::gpu_gemm_kernel::mma;
    constexpr auto wgmma = mp::gpu_gemm_kernel::prefer_wgmma;
    for (const auto order : orders) {
        check_second_outputs<mma>(random, {37, 45, 40, 1.0F, 0.5F}, order, orders[0], false);
        check_second_outputs<mma>(random, {64, 64, 32}, orders[0], order, true);
        check_second_outputs<wgmma>(random, {130, 136, 72}, order, orders[1], true);
    }
    check_second_outputs<wgmma>(random, {128, 128, 64, 1.0F, 0.5F}, orders[0], orders[0], true);
    check_second_outputs<wgmma>(random, {200, 144, 72, 1.0F, 0.5F}, orders[0], orders[1], true, true);
}

TEST_CASE("gemm: wmma and mma.sync have the same bits") {
    generator random(10);
    mp::unique_cuda_stream stream;
    if (mp::properties_of(stream.get()).capability < 80) return;
    const auto draw = [&] { return std::normal_distribution<float>()(random); };
    matrix<mp::half> a(stream, 300, 500, orders[0], true, draw);
    matrix<mp::half> b(stream, 500, 280, orders[1], false, draw);
    matrix<float> one(stream, 300, 280, orders[0], true, [] { return 0.0F; });
    matrix<float> other(stream, 300, 280, orders[0], true, [] { return 0.0F; });
    mp::gemm<mp::gpu_gemm_kernel::mma>(stream.get(), 1.0F, a.device(), b.device(), 0.0F, one.device());
    mp::gemm<mp::gpu_gemm_kernel::wmma>(stream.get(), 1.0F, a.device(), b.device(), 0.0F, other.device());
    const auto x = one.on_device.to_host(stream);
    const auto y = other.on_device.to_host(stream);
    CHECK(std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
}

TEST_CASE("gemm: a plan has a name and a workspace, and products can be captured into a graph") {
    mp::unique_cuda_stream stream;
    const auto plan = mp::plan_gemm<mp::half>(stream.get(), 64, 64, 20000, 1, {.splits = 0});
    MESSAGE(plan.kernel_name());
    CHECK(plan.splits > 1);
    CHECK(plan.workspace_size() == std::size_t{64} * 64 * static_cast<std::size_t>(plan.splits));
    matrix<mp::half> a(stream, 40, 20, orders[0], true, [] { return 1.0F; });
    matrix<mp::half> b(stream, 20, 40, orders[0], true, [] { return 1.0F; });
    matrix<float> c(stream, 40, 40, orders[0], true, [] { return 0.0F; });
    mp::synchronize(stream);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t run = nullptr;
    mp::check_cuda(cudaStreamBeginCapture(stream.get().stream, cudaStreamCaptureModeGlobal),
                   "cudaStreamBeginCapture");
    mp::gemm(stream.get(), 1.0F, a.device(), b.device(), 1.0F, c.device());
    mp::check_cuda(cudaStreamEndCapture(stream.get().stream, &graph), "cudaStreamEndCapture");
    mp::check_cuda(cudaGraphInstantiate(&run, graph, 0), "cudaGraphInstantiate");
    for (int i = 0; i < 3; ++i) mp::check_cuda(cudaGraphLaunch(run, stream.get().stream), "cudaGraphLaunch");
    CHECK(c.on_device.to_host(stream)[0] == 60.0F);
    mp::check_cuda(cudaGraphExecDestroy(run), "cudaGraphExecDestroy");
    mp::check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

TEST_CASE("gemm: prepared products, and streams with a workspace, encode tensor maps once") {
    generator random(12);
    mp::unique_cuda_stream stream;
    mp::device_workspace workspace(stream);
    const auto draw = [&] { return static_cast<float>(std::uniform_int_distribution<int>(-3, 3)(random)); };
    matrix<mp::half> a(stream, 130, 64, orders[0], true, draw);
    matrix<mp::half> b(stream, 64, 72, orders[1], true, draw);
    matrix<float> c(stream, 130, 72, orders[0], true, draw);
    mp::gemm(mp::cpu{}, 1.0F, a.host(), b.host(), 0.0F, c.host());
    const auto multiply = [&](const auto& exec) {
        mp::gemm<mp::gpu_gemm_kernel::prefer_wgmma>(exec, 1.0F, a.device(), b.device(), 0.0F, c.device());
    };
    /// Maps that a call encodes, of which the result is right.
    const auto maps_of = [&](auto call) {
        const long before = mp_interpreted_tensor_maps != nullptr ? mp_interpreted_tensor_maps() : 0;
        c.on_device.fill_bytes(stream, 0xFF);
        call();
        const std::vector<float> found = c.on_device.to_host(stream);
        CHECK(std::memcmp(found.data(), c.values.data(), found.size() * sizeof(float)) == 0);
        return mp_interpreted_tensor_maps != nullptr ? mp_interpreted_tensor_maps() - before : 0;
    };
    const bool counts = mp_interpreted_tensor_maps != nullptr && mp::properties_of(stream).has_warpgroups;
    const long all = counts ? 3 : 0;
    for (int i = 0; i < 2; ++i) CHECK(maps_of([&] { multiply(stream); }) == all);
    const auto product = mp::prepare(stream, multiply);
    const mp::unique_cuda_stream other;
    CHECK(maps_of([&] { product(stream); }) == 0);
    CHECK(maps_of([&] {
              mp::synchronize(stream);
              product(other);
              mp::synchronize(other);
          }) == 0);
    mp::cuda_graph graph;
    graph.capture(stream, [&] { product(stream); });
    CHECK(graph.nodes() == 1);
    CHECK(maps_of([&] { graph.launch(stream); }) == 0);
    stream.workspace = &workspace;
    CHECK(maps_of([&] { multiply(stream); }) == all);
    CHECK(maps_of([&] { multiply(stream); }) == 0);
}

TEST_CASE("gemm: programmatic launches wait for each other, captured or not") {
    generator random(13);
    mp::unique_cuda_stream stream;
    stream.programmatic_launch = true;
    const auto draw = [&] { return static_cast<float>(std::uniform_int_distribution<int>(-3, 3)(random)); };
    matrix<mp::half> a(stream, 130, 256, orders[0], true, draw);
    matrix<mp::half> b(stream, 256, 72, orders[1], true, draw);
    matrix<float> c(stream, 130, 72, orders[0], true, draw);
    constexpr auto kernel = mp::gpu_gemm_kernel::prefer_wgmma;
    const auto plan = mp::plan_gemm<kernel>(stream, a.device(), b.device(), {.splits = 2});
    mp::device_buffer<float> sums(plan.workspace_size());
    // Four kernels, each of which reads what the one before has written.
    const auto step = [&] {
        mp::gemm<kernel>(stream, plan, 1.0F, a.device(), b.device(), 0.0F, c.device(),
                         mp::identity_epilogue{}, sums.span());
        mp::gemm<kernel>(stream, plan, 1.0F, a.device(), b.device(), 1.0F, c.device(),
                         mp::identity_epilogue{}, sums.span());
    };
    mp::gemm(mp::cpu{}, 2.0F, a.host(), b.host(), 0.0F, c.host());
    const auto is_right = [&] {
        const std::vector<float> found = c.on_device.to_host(stream);
        return std::memcmp(found.data(), c.values.data(), found.size() * sizeof(float)) == 0;
    };
    step();
    CHECK(is_right());
    mp::cuda_graph graph;
    graph.capture(stream, step);
    CHECK(graph.nodes() == 4);
    for (int i = 0; i < 10; ++i) graph.launch(stream);
    CHECK(is_right());
}

TEST_SUITE_BEGIN("no device needed");

TEST_CASE("gemm: the device refuses what the CPU refuses, in the same words") {
    std::vector<mp::half> halves(64);
    std::vector<float> floats(64);
    const auto a = mp::row_major(halves.data(), 4, 5);
    const auto b = mp::row_major(halves.data(), 5, 6);
    const auto c = mp::row_major(floats.data(), 4, 6);
    const auto both = [&](auto left, auto right, auto result, auto epilogue) {
        std::string texts[2] = {"nothing", "nothing"};
        try {
            mp::gemm(mp::cpu{}, 1.0F, left, right, 0.0F, result, epilogue);
        } catch (const mp::argument_error& error) {
            texts[0] = error.what();
        }
        try {
            mp::gemm(mp::cuda_stream{}, 1.0F, left, right, 0.0F, result, epilogue);
        } catch (const mp::argument_error& error) {
            texts[1] = error.what();
        }
        CHECK(texts[0] != "nothing");
        CHECK(texts[0] == texts[1]);
    };
    const mp::identity_epilogue none;
    both(a, mp::transposed(b), c, none);
    both(a, b, mp::row_major(floats.data(), 5, 6), none);
    both(a, b, mp::row_major(floats.data(), 4, 6, 5), none);
    both(mp::row_major(static_cast<mp::half*>(nullptr), 4, 5), b, c, none);
    both(mp::row_major(halves.data(), -4, 5), b, c, none);
    both(a, mp::row_major(halves.data() + 20, 5, 6), mp::row_major(halves.data() + 10, 4, 6), none);
    const std::vector<float> bias(5);
    const auto wrong_bias = mp::bias_per_column(bias);
    std::string text;
    try {
        mp::gemm(mp::cuda_stream{}, 1.0F, a, b, 0.0F, c, mp::compose(wrong_bias, mp::relu_epilogue{}));
    } catch (const mp::argument_error& error) {
        text = error.what();
    }
    CHECK(text == "mp::gemm: bias.size() is 5; it must equal c.columns, which is 6");
    CHECK_NOTHROW(mp::gemm(mp::cuda_stream{}, 1.0F, a.block(0, 0, 0, 5), b, 0.0F, c.block(0, 0, 0, 6)));
}

TEST_SUITE_END();

}  // namespace
