// SPDX-License-Identifier: MIT
// Products on the simulated GPU compare what epilogues read and write with their matrices, before anything is launched.
#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/gemm_grouped.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr std::ptrdiff_t size = 16;
constexpr auto elements = static_cast<std::size_t>(size * size);

template <class Function>
std::string refusal(Function f) {
    try {
        f();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("operands of epilogues are compared with the matrices of products on a GPU") {
    std::vector<mp::half> a(elements, mp::half(1)), b(elements, mp::half(2));
    std::vector<float> c(3 * elements, 3.0F);
    float amax = 0;
    float* const first = c.data() + elements;
    const auto of_a = mp::row_major(a.data(), size, size);
    const auto of_b = mp::row_major(b.data(), size, size);
    const auto of_c = mp::row_major(first, size, size);
    const mp::simulated_gpu<mp::arch::sm_80> gpu{};
    constexpr auto kernel = mp::gpu_gemm_kernel::mma;
    const auto residual = [](const float* data) { return mp::add_residual(mp::row_major(data, size, size)); };
    const std::vector<std::int32_t> offsets{0, 5, size};
    const mp::matrix_batch batch{mp::row_major(first - elements, size, size), size * size};

    const auto one = [&](const auto& epilogue) {
        return refusal([&] { mp::gemm<kernel>(gpu, 1.0F, of_a, of_b, 0.0F, of_c, epilogue); });
    };
    const auto batched = [&](const auto& epilogue) {
        return refusal([&] {
            mp::gemm_batched<kernel>(gpu, 2, 1.0F, mp::matrix_batch{of_a}, mp::matrix_batch{of_b}, 0.0F,
                                     batch, epilogue);
        });
    };
    const auto along_m = [&](const auto& epilogue) {
        return refusal([&] {
            mp::gemm_grouped_m<kernel>(gpu, 1.0F, of_a, mp::matrix_batch{of_b}, offsets, 0.0F, of_c,
                                       epilogue);
        });
    };
    const auto along_k = [&](const auto& epilogue) {
        return refusal(
            [&] { mp::gemm_grouped_k<kernel>(gpu, 1.0F, of_a, of_b, offsets, 0.0F, batch, epilogue); });
    };
    const std::string c_and_residual =
        "mp::gemm: c overlaps residual; they must not share elements, because c is written while residual is "
        "in use";
    CHECK(one(residual(first + 1)) == c_and_residual);
    CHECK(batched(residual(first)) == c_and_residual);
    CHECK(along_m(residual(first - 1)) == c_and_residual);
    CHECK(along_k(residual(first)) == c_and_residual);
    const auto in_b = mp::amax_into(reinterpret_cast<float*>(b.data() + 8));
    const std::string amax_and_b =
        "mp::gemm: amax overlaps b; they must not share elements, because amax is written while b is in use";
    CHECK(one(in_b) == amax_and_b);
    CHECK(batched(in_b) == amax_and_b);
    CHECK(along_m(in_b) == amax_and_b);
    CHECK(along_k(in_b) == amax_and_b);
    CHECK(c == std::vector<float>(3 * elements, 3.0F));

    CHECK(along_m(residual(first)) == "none");
    CHECK(one(residual(first)) == "none");
    CHECK(first[0] == 3.0F + 2 * 32.0F);
    CHECK(one(mp::amax_into(&amax)) == "none");
    CHECK(amax == 32.0F);
}
