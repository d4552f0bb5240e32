// SPDX-License-Identifier: MIT
// Plans that were changed by hand, and what epilogues are on GPUs.
#include "device/gpu/gemm_cases.hpp"
#include "larger_error.hpp"

#include <doctest/doctest.h>
#include <mp/device/gpu/gemm.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/simt.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using mp::arch;
using mp::gpu_gemm_kernel;

/// What a product of 8 x 8 by the plan says, or nothing if it writes.
template <gpu_gemm_kernel Kernel, arch Arch, class Input>
std::string complaint(const mp::gpu_gemm_plan& plan) {
    const std::vector<Input> ones(64, Input(1));
    const auto a = mp::row_major(ones.data(), 8, 8);
    std::vector<float> c(64, 5.0F);
    try {
        mp::gemm<Kernel>(mp::simulated_gpu<Arch>{}, plan, 1, a, mp::transposed(a), 0,
                         mp::row_major(c.data(), 8, 8));
    } catch (const mp::argument_error& error) {
        CHECK(c == std::vector<float>(64, 5.0F));
        return error.what();
    }
    CHECK(c == std::vector<float>(64, 8.0F));
    return {};
}

TEST_CASE("a plan with a tile that no kernel has is refused before anything is written") {
    constexpr auto mma = gpu_gemm_kernel::mma;
    auto plan = mp::plan_gemm<mp::float8_e4m3fn>(mp::simulated_gpu<arch::sm_89>{}, 8, 8, 8);
    REQUIRE(plan.kernel == mma);
    CHECK(complaint<mma, arch::sm_89, mp::float8_e4m3fn>(plan).empty());
    plan.tile_rows = 128;
    plan.tile_columns = 256;  // half has this tile
    CHECK(complaint<mma, arch::sm_89, mp::float8_e4m3fn>(plan) ==
          "mp::gemm: plan.tile_columns is 256; it must be that of a tile which mma has for operands of this "
          "type: 128x128, 64x64, 16x32");
    plan.tile_rows = 64;
    CHECK(complaint<mma, arch::sm_89, mp::float8_e4m3fn>(plan).find("plan.tile_columns is 256") !=
          std::string::npos);
    plan.tile_rows = 96;
    CHECK(complaint<mma, arch::sm_89, mp::float8_e4m3fn>(plan).find("plan.tile_rows is 96") !=
          std::string::npos);
    plan.tile_rows = plan.tile_columns = 64;
    plan.cluster_blocks = 2;
    CHECK(complaint<mma, arch::sm_89, mp::float8_e4m3fn>(plan).find("plan.cluster_blocks is 2") !=
          std::string::npos);
    plan.cluster_blocks = 1;
    for (const int splits : {0, -1, 65}) {
        plan.splits = splits;
        CHECK(complaint<mma, arch::sm_89, mp::float8_e4m3fn>(plan).find("plan.splits is ") !=
              std::string::npos);
    }
}

TEST_CASE("other kernels refuse tiles that they do not have") {
    constexpr auto simt = gpu_gemm_kernel::simt;
    auto plan = mp::plan_gemm<mp::half, simt>(mp::simulated_gpu<arch::sm_75>{}, 8, 8, 8);
    CHECK(complaint<simt, arch::sm_75, mp::half>(plan).empty());
    plan.tile_rows = plan.tile_columns = 128;
    CHECK(complaint<simt, arch::sm_75, mp::half>(plan).find("simt has for operands of this type: 64x64") !=
          std::string::npos);

    constexpr auto wgmma = gpu_gemm_kernel::wgmma;
    const mp::simulated_gpu<arch::sm_90> hopper{};
    auto large = mp::plan_gemm<mp::half, wgmma>(hopper, 256, 256, 64);
    large.rows = large.columns = large.k = 8;
    CHECK(complaint<wgmma, arch::sm_90, mp::half>(large).empty());
    large.tile_rows = 128;
    large.tile_columns = 256;
    large.cluster_blocks = 1;
    CHECK(
        complaint<wgmma, arch::sm_90, mp::half>(large) ==
        "mp::gemm: plan.cluster_blocks is 1; it must be that of a tile which wgmma has for operands of this "
        "type: 128x256 in clusters of 2, 64x256 in clusters of 2 ping-pong, 128x128, 16x64 swapped, 64x64 "
        "swapped");
    large.tile_columns = 128;
    large.swapped = true;
    CHECK(complaint<wgmma, arch::sm_90, mp::half>(large).find("plan.swapped is true") != std::string::npos);
    large.swapped = false;
    large.ping_pong = true;
    CHECK(complaint<wgmma, arch::sm_90, mp::half>(large).find("plan.ping_pong is true") != std::string::npos);
    large.tile_rows = 64;
    large.tile_columns = 256;
    large.cluster_blocks = 2;
    CHECK(complaint<wgmma, arch::sm_90, mp::half>(large).empty());
}

TEST_CASE("warpgroups take turns where epilogues are long beside k") {
    constexpr auto wgmma = gpu_gemm_kernel::wgmma;
    const auto name = [](std::ptrdiff_t k, int instructions, int splits = 1) {
        return mp::plan_gemm<mp::half, wgmma>(mp::simulated_gpu<arch::sm_90>{}, 8192, 8192, k, 1,
                                              {.splits = splits, .epilogue_instructions = instructions})
            .kernel_name();
    };
    CHECK(name(64, 0) == "wgmma.128x256x64.cluster2");
    CHECK(name(256, 55) == "wgmma.64x256x64.pingpong.cluster2");
    CHECK(name(512, 55) == "wgmma.128x256x64.cluster2");
    CHECK(name(1024, 250) == "wgmma.64x256x64.pingpong.cluster2");
    CHECK(name(2048, 250) == "wgmma.128x256x64.cluster2");
    CHECK(name(1024, 250, 2) == "wgmma.128x256x64.cluster2.split2");
    // mp::gemm knows its epilogue; threads end a C that is read.
    using bias = mp::bias_epilogue<float, mp::bias_axis::column>;
    const auto weight = [](const auto& options) { return options.epilogue_instructions; };
    CHECK(weight(mp::detail::options_for<mp::identity_epilogue>(1)) ==
          weight(mp::detail::options_for<bias>(0)));
    CHECK(weight(mp::detail::options_for<mp::identity_epilogue>(0)) <
          weight(mp::detail::options_for<bias>(0)));
    CHECK(weight(mp::detail::options_for<mp::epilogue_chain<bias, mp::gelu_epilogue>>(0)) ==
          mp::epilogue_instructions<mp::gelu_epilogue>);
    // Those of 8 bits have no such tiles.
    CHECK(mp::plan_gemm<mp::float8_e4m3fn, wgmma>(mp::simulated_gpu<arch::sm_90>{}, 8192, 8192, 128, 1,
                                                  {.epilogue_instructions = 250})
              .kernel_name() == "wgmma.128x128x128.cluster2");
    CHECK_THROWS_AS(static_cast<void>(name(64, -1)), mp::argument_error);
}

TEST_CASE("plans know how many blocks have room in the shared memory of a multiprocessor") {
    // Of 128 x 128 three stages fit twice in 100 KiB, four do not.
    CHECK(mp::detail::stages_that_fit(80, 16384, 4, 2) == 4);
    CHECK(mp::detail::stages_that_fit(90, 16384, 4, 2) == 4);
    for (const int capability : {86, 89, 120, 121}) {
        CHECK(mp::detail::stages_that_fit(capability, 16384, 4, 2) == 3);
        CHECK(mp::detail::stages_that_fit(capability, 24576, 4, 1) == 4);
    }
    // A device with less shared memory than its code was compiled for.
    constexpr auto mma = gpu_gemm_kernel::mma;
    mp::gpu_properties gpu{80, 100, false, 80};
    CHECK(mp::plan_gemm<mp::half, mma>(gpu, 1280, 1280, 512).kernel_name() == "mma.128x128x32");
    gpu.shared_bytes = 100 << 10;
    CHECK(mp::detail::tiles_of<mp::half>(mma)[0].fits(gpu));
    CHECK(!mp::detail::tiles_of<mp::half>(mma)[1].fits(gpu));
    CHECK(mp::plan_gemm<mp::half, mma>(gpu, 1280, 2560, 512).kernel_name() == "mma.128x256x32");
}

TEST_CASE("products of few rows or columns have many blocks") {
    const mp::simulated_gpu<arch::sm_80> gpu{};
    CHECK(mp::plan_gemm<mp::half>(gpu, 1, 4096, 4096).kernel_name() == "mma.16x32x32");
    CHECK(mp::plan_gemm<mp::half>(gpu, 16, 3072, 4096).kernel_name() == "mma.16x32x32");
    CHECK(mp::plan_gemm<mp::half>(gpu, 64, 4096, 4096).kernel_name() == "mma.64x64x32");
    CHECK(mp::plan_gemm<mp::half>(gpu, 4096, 4096, 4096).kernel_name() == "mma.128x256x32");
    // Blocks fill a device of 8 multiprocessors three times.
    const mp::simulated_gpu<arch::sm_80> small{.multiprocessors = 8};
    CHECK(mp::plan_gemm<mp::half>(small, 64, 64, 20000, 1, {.splits = 0}).kernel_name() ==
          "mma.16x32x32.split3");
    CHECK(mp::plan_gemm<mp::float8_e4m3fn>(mp::simulated_gpu<arch::sm_89>{}, 16, 4096, 4096).kernel_name() ==
          "mma.16x32x64");
    // wgmma computes the transpose of C, unless rows of A do not run along k.
    const auto by_wgmma = [](std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order,
                             int splits) {
        const auto* const begin = reinterpret_cast<const mp::half*>(std::uintptr_t{4096});  // is not read
        return mp::plan_gemm(mp::simulated_gpu<arch::sm_90>{},
                             mp::matrix_view<const mp::half>{
                                 begin, rows, 4096, order == mp::storage_order::row_major ? 4096 : 64, order},
                             mp::column_major(begin, 4096, columns), {.splits = splits})
            .kernel_name();
    };
    constexpr auto row = mp::storage_order::row_major;
    CHECK(by_wgmma(1, 4096, row, 1) == "wgmma.16x64x64.swapped");
    CHECK(by_wgmma(16, 14336, row, 1) == "wgmma.16x64x64.swapped");
    CHECK(by_wgmma(17, 4096, row, 1) == "wgmma.64x64x64.swapped");
    CHECK(by_wgmma(64, 28672, row, 1) == "wgmma.64x64x64.swapped");
    CHECK(by_wgmma(64, 4096, row, 0) == "wgmma.64x64x64.swapped.split2");
    CHECK(by_wgmma(64, 4096, mp::storage_order::column_major, 1) == "mma.64x64x32");
}

TEST_CASE("few rows of 8 bits by mma.sync have the bits of the model, which promotes sums") {
    for (const auto a_order : gpu_gemm_test::orders) {
        for (const auto b_order : gpu_gemm_test::orders) {
            gpu_gemm_test::check<gpu_gemm_kernel::mma, arch::sm_89, mp::float8_e4m3fn, mp::float8_e4m3fn,
                                 float>(
                {13, 45, 333},
                {.a_order = a_order, .b_order = b_order, .beta = 1, .seed = 1, .tile_rows = 16},
                gpu_gemm_test::normal_numbers(3));
        }
    }
}

/// The largest error of an epilogue in a product on the simulated GPU, in units of the last place.
template <class Epilogue, class Exact>
double epilogue_error(const Epilogue& epilogue, std::vector<float>& results, Exact exact) {
    std::vector<mp::half> x;
    for (int i = -120; i <= 120; ++i) x.push_back(mp::half(static_cast<float>(i) * 0.046875F));
    const std::vector<mp::half> one{mp::half(1)};
    results.resize(x.size());
    const auto rows = static_cast<std::ptrdiff_t>(x.size());
    mp::gemm<gpu_gemm_kernel::simt>(mp::simulated_gpu<arch::sm_75>{}, 1, mp::row_major(x.data(), rows, 1),
                                    mp::row_major(one.data(), 1, 1), 0,
                                    mp::row_major(results.data(), rows, 1), epilogue);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = exact(static_cast<double>(static_cast<float>(x[i])));
        if (expected == 0) continue;
        const double unit = std::ldexp(1.0, std::ilogb(expected) - 23);
        worst = tests::larger_error(worst, std::fabs(static_cast<double>(results[i]) - expected) / unit);
    }
    return worst;
}

TEST_CASE("activation functions behind products on GPUs are those of the ops on GPUs") {
    std::vector<float> results;
    const auto gelu = [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); };
    const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
    CHECK(epilogue_error(mp::silu_epilogue{}, results, silu) < 4);
    CHECK(epilogue_error(mp::gelu_epilogue{}, results, gelu) < 5);
    std::vector<float> x(results.size()), expected(results.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = (static_cast<float>(i) - 120.0F) * 0.046875F;
    const auto rows = static_cast<std::ptrdiff_t>(x.size());
    mp::ops::gelu(mp::simulated_gpu<arch::sm_75>{}, mp::row_major(x.data(), rows, 1),
                  mp::row_major(expected.data(), rows, 1));
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        different +=
            std::bit_cast<std::uint32_t>(results[i]) != std::bit_cast<std::uint32_t>(expected[i]) ? 1 : 0;
    }
    CHECK(different == 0);
    // In a chain, too.
    const std::vector<float> no_bias{0.0F};
    std::vector<float> chained;
    CHECK(epilogue_error(mp::compose(mp::bias_per_column(no_bias), mp::gelu_epilogue{}), chained, gelu) < 5);
    CHECK(chained == results);
}

}  // namespace
