// SPDX-License-Identifier: MIT
/// \file
/// Sums that tell models of tensor cores apart where their authors disagree or have not looked: which
/// exponent a zero has, where bits of a subnormal addend are cut off, NaN and infinity, signs of zero,
/// overflow.
#pragma once

#include <mp/device/simt/fragments.hpp>
#include <mp/half.hpp>
#include <mp/linalg/tensor_core/arch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensor_cores.hpp"

namespace bench::gpu {

/// Questions of one topic.
struct topic {
    std::string name;
    std::vector<question> questions;
};

/// Makes questions for an instruction.
template <class Input, class Sum>
class questioner {
public:
    static constexpr int k = mp::simt::mma_k<Input>;
    using code = std::conditional_t<sizeof(Input) == 1, std::uint8_t,
                                    std::conditional_t<sizeof(Input) == 2, std::uint16_t, std::uint32_t>>;

    /// All topics; `random_each` questions with random numbers in each of theirs.
    [[nodiscard]] std::vector<topic> topics(int random_each) {
        return {{"the exponent of zero", exponent_of_zero()},
                {"bits below a subnormal addend", subnormal_addend()},
                {"NaN and infinity", not_finite()},
                {"signs of zero", signed_zeros()},
                {"overflow and underflow of the sum", edges()},
                {"random codes", random_codes(random_each)},
                {"random numbers close together", random_numbers(random_each, 3)},
                {"random numbers far apart", random_numbers(random_each, 40)}};
    }

private:
    using terms = std::vector<std::pair<double, double>>;

    /// Factors from the front on, zeros behind; the addend is rounded to the type of the sum.
    static question make(const terms& products, double addend) {
        question it{};
        for (std::size_t i = 0; i < products.size(); ++i) {
            put(it.a, i, Input(products[i].first));
            put(it.b, i, Input(products[i].second));
        }
        it.addend = sum_bits(addend);
        return it;
    }
    static void put(std::uint32_t (&words)[8], std::size_t index, Input value) {
        std::memcpy(reinterpret_cast<unsigned char*>(words) + index * sizeof(Input), &value, sizeof value);
    }
    static void put_code(std::uint32_t (&words)[8], std::size_t index, code value) {
        std::memcpy(reinterpret_cast<unsigned char*>(words) + index * sizeof value, &value, sizeof value);
    }
    static std::uint32_t sum_bits(double value) {
        if constexpr (std::is_same_v<Sum, mp::half>) {
            return mp::half(value).bits();
        } else {
            return mp::detail::bit_cast<std::uint32_t>(static_cast<float>(value));
        }
    }
    /// 2^exponent as two factors that are as alike as possible, so that both are in range.
    static std::pair<double, double> power(int exponent, double sign = 1) {
        const int one = exponent / 2;
        return {sign * std::ldexp(1.0, one), std::ldexp(1.0, exponent - one)};
    }
    static constexpr bool half_sum = std::is_same_v<Sum, mp::half>;
    /// The exponent of the smallest number of the sum.
    static constexpr int least_bit = half_sum ? -24 : -149;

    /// The smallest number of the sum, or one and a half of it, less 2^-d: zeros are among the terms, and the
    /// small one counts as long as it is not cut off below the exponent of zero.
    static std::vector<question> exponent_of_zero() {
        std::vector<question> result;
        for (int below = 1; below <= 24; ++below) {
            const auto small = power(least_bit - below, -1);
            for (const bool with_half_more : {false, true}) {
                terms products{power(least_bit), small};
                if (with_half_more) products.push_back(power(least_bit - 1));
                result.push_back(make(products, 0));
                // The zeros may all be products, with an addend that is none.
                products.erase(products.begin());
                result.push_back(make(products, std::ldexp(1.0, least_bit)));
            }
        }
        return result;
    }

    /// A tie that small products decide, with no zero among the terms: pairs of products that cancel each
    /// other fill up the block.
    static std::vector<question> subnormal_addend() {
        std::vector<question> result;
        for (const int addend_bits : {1, 2, 3, 5, 511, 1023}) {
            for (int below = 1; below <= 24; ++below) {
                for (const double sign : {1.0, -1.0}) {
                    terms products{power(least_bit - 1), power(least_bit - below, sign)};
                    while (static_cast<int>(products.size()) < k) {
                        products.push_back(power(least_bit - 24, products.size() % 2 == 0 ? 1 : -1));
                    }
                    result.push_back(make(products, std::ldexp(addend_bits, least_bit)));
                }
            }
        }
        return result;
    }

    static std::vector<question> not_finite() {
        const double infinity = std::numeric_limits<double>::infinity();
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const double values[] = {0.0, -0.0, 1.0, -2.0, infinity, -infinity, nan, -nan};
        std::vector<question> result;
        for (const double a : values) {
            for (const double b : values) {
                for (const double c : values) {
                    result.push_back(make({{1, 1}, {a, b}}, c));
                    result.push_back(make({{a, b}, {b, a}, {-1, 1}}, c));
                }
            }
        }
        return result;
    }

    static std::vector<question> signed_zeros() {
        std::vector<question> result;
        for (const double c : {0.0, -0.0, 1.0, -1.0}) {
            for (const double sign : {1.0, -1.0}) {
                terms all;
                for (int i = 0; i < k; ++i) all.emplace_back(sign * 0.0, 1.0);
                result.push_back(make(all, c));
                result.push_back(make({{-c, 1.0}}, c));
                result.push_back(make({{sign, 1.5}, {sign, -1.5}}, c));
                result.push_back(make({{sign * 0.0, 1.0}}, c));
            }
        }
        return result;
    }

    static std::vector<question> edges() {
        std::vector<question> result;
        const double largest = half_sum ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
        const int top = half_sum ? 15 : 127;
        for (const double sign : {1.0, -1.0}) {
            for (int below = 5; below <= 30; ++below) {
                const auto small = power(top - below, sign);
                result.push_back(make({small}, sign * largest));
                result.push_back(make({power(top, sign), small}, sign * std::ldexp(1.0, top)));
                const auto less = power(top - below, -sign);
                result.push_back(make({power(top, sign), less}, sign * std::ldexp(1.0, top)));
            }
            // Sums around the smallest numbers, whose last bits are cut off or rounded.
            for (int above = -4; above <= 12; ++above) {
                for (int below = 1; below < 16; below += 3) {
                    result.push_back(
                        make({power(least_bit + above, sign), power(least_bit + above - below)}, 0));
                    result.push_back(make({power(least_bit + above - below, sign)},
                                          std::ldexp(1.0, least_bit + std::max(above, 0))));
                }
            }
        }
        return result;
    }

    [[nodiscard]] std::vector<question> random_codes(int count) {
        std::vector<question> result;
        for (int i = 0; i < count; ++i) {
            question it{};
            for (std::size_t p = 0; p < static_cast<std::size_t>(k); ++p) {
                put_code(it.a, p, clean(static_cast<code>(random_())));
                put_code(it.b, p, clean(static_cast<code>(random_())));
            }
            it.addend = static_cast<std::uint32_t>(random_()) & (half_sum ? 0xFFFFU : 0xFFFFFFFFU);
            result.push_back(it);
        }
        return result;
    }

    /// Numbers whose exponents lie within `spread` of each other, around one that is different each time.
    [[nodiscard]] std::vector<question> random_numbers(int count, int spread) {
        constexpr int least = sizeof(Input) == 1 ? -6 : std::is_same_v<Input, mp::half> ? -14 : -60;
        constexpr int most = sizeof(Input) == 1 ? 6 : std::is_same_v<Input, mp::half> ? 12 : 60;
        std::uniform_int_distribution<int> middle(least, most);
        std::uniform_int_distribution<int> distance(-spread / 2, spread / 2);
        std::uniform_real_distribution<double> significand(-2.0, 2.0);
        std::vector<question> result;
        for (int i = 0; i < count; ++i) {
            const int a_exponent = middle(random_);
            const int b_exponent = middle(random_);
            const auto draw = [&](int exponent) {
                return std::ldexp(significand(random_),
                                  std::clamp(exponent + distance(random_), least, most));
            };
            terms products;
            for (int p = 0; p < k; ++p) products.emplace_back(draw(a_exponent), draw(b_exponent));
            const int of_sum =
                std::clamp(a_exponent + b_exponent + 2 * distance(random_), 2 * least, 2 * most);
            const double addend =
                std::ldexp(significand(random_), half_sum ? std::clamp(of_sum, -24, 14) : of_sum);
            result.push_back(make(products, i % 3 == 0 ? 0.0 : addend));
        }
        return result;
    }

    /// Without NaN and infinity, of which one would make all the others not matter; and without bits that
    /// nobody reads.
    static code clean(code value) {
        const Input number = [&] {
            Input it{};
            std::memcpy(static_cast<void*>(&it), &value, sizeof value);
            return it;
        }();
        const double x = static_cast<double>(static_cast<float>(number));
        return std::isfinite(x) ? value : code{0};
    }

    std::mt19937 random_{2026};
};

}  // namespace bench::gpu
