// SPDX-License-Identifier: MIT
/// \file
/// How exact is a dot product of halves? Three ways to write one, each compared with Boost's exact rationals.
#include <mp/check.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using mp::half;

/// The dot product under test: put your own here.
half with_half_sum(const std::vector<half>& a, const std::vector<half>& b) {
    half sum{};
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

half with_fused_half_sum(const std::vector<half>& a, const std::vector<half>& b) {
    half sum{};
    for (std::size_t i = 0; i < a.size(); ++i) sum = mp::fma(a[i], b[i], sum);
    return sum;
}

/// Products and sum in float, rounded to half once at the end.
half with_gemm(const std::vector<half>& a, const std::vector<half>& b) {
    const auto length = static_cast<std::ptrdiff_t>(a.size());
    half result;
    mp::gemm(mp::cpu{}, 1.0F, mp::row_major(a.data(), 1, length), mp::row_major(b.data(), length, 1), 0.0F,
             mp::row_major(&result, 1, 1));
    return result;
}

/// Numbers in [-1, 1), the same in every run.
std::vector<half> numbers(std::size_t count, std::uint32_t& state) {
    std::vector<half> result(count);
    for (half& value : result) {
        state = state * 1664525U + 1013904223U;
        value = half(static_cast<float>(state >> 8) * 0x1p-23F - 1.0F);
    }
    return result;
}

}  // namespace

int main() {
    constexpr std::size_t products = 200;
    constexpr std::size_t length = 1000;
    std::vector<boost::multiprecision::cpp_rational> exact;
    std::vector<half> half_sums, fused_sums, gemm_sums;
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < products; ++i) {
        const std::vector<half> a = numbers(length, state);
        const std::vector<half> b = numbers(length, state);
        exact.push_back(mp::exact_dot(a, b));
        half_sums.push_back(with_half_sum(a, b));
        fused_sums.push_back(with_fused_half_sum(a, b));
        gemm_sums.push_back(with_gemm(a, b));
    }
    std::printf("%zu dot products of %zu halves, compared with exact arithmetic\n\n", products, length);
    const auto print = [&](std::string_view name, const std::vector<half>& computed) {
        const std::string summary = to_string(mp::error_report(computed, exact));
        std::printf("%.*s\n%s\n", static_cast<int>(name.size()), name.data(), summary.c_str());
    };
    print("a half for the sum, products rounded to half:", half_sums);
    print("a half for the sum, fused multiply-add:", fused_sums);
    print("mp::gemm, a float for the sum:", gemm_sums);
}
