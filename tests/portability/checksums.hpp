// SPDX-License-Identifier: MIT
// Checksums of what every public operation computes, to be compared among platforms: a line `name checksum`
// for each. They are taken over values as numbers, never over memory, whose order of bytes differs.
#pragma once

#include <mp/matrix_view.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace portability {

/// A hash of a sequence of values. The bits of NaN in float and double are left to the processor, and count
/// as one value; those of the library's numbers count as they are.
class checksum {
public:
    void add_word(std::uint64_t bits) {
        value_ = (value_ ^ bits) * 0x100000001b3U;
        value_ ^= value_ >> 29;
    }

    template <class T>
    void add(const T& x) {
        if constexpr (std::same_as<T, float>) {
            const auto bits = std::bit_cast<std::uint32_t>(x);
            add_word((bits & 0x7fffffffU) > 0x7f800000U ? 0x7fc00000U : bits);
        } else if constexpr (std::same_as<T, double>) {
            const auto bits = std::bit_cast<std::uint64_t>(x);
            constexpr std::uint64_t infinity = 0x7ff0000000000000U;
            add_word((bits & ~(std::uint64_t{1} << 63)) > infinity ? infinity + 1 : bits);
        } else if constexpr (std::is_enum_v<T> || std::integral<T>) {
            add_word(static_cast<std::uint64_t>(x));
        } else if constexpr (std::convertible_to<const T&, std::string_view>) {
            for (const char c : std::string_view(x)) add_word(static_cast<unsigned char>(c));
        } else if constexpr (std::ranges::range<const T>) {
            for (const auto& element : x) add<std::remove_cvref_t<decltype(element)>>(element);
        } else if constexpr (requires { isnan(x); }) {
            add_word(isnan(x) ? ~std::uint64_t{0} : x.bits());
        } else {
            add(x.first());  // a pair
            add(x.second());
        }
    }

    template <class T>
    void add_code(const T& x) {
        if constexpr (std::ranges::range<const T>) {
            for (const auto& element : x) add_word(element.bits());
        } else {
            add_word(x.bits());
        }
    }

    [[nodiscard]] std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0xcbf29ce484222325U;
};

/// Lines in the order in which they were added.
class report {
public:
    void add(std::string name, const checksum& sum) { add(std::move(name), sum.value()); }
    void add(std::string name, std::uint64_t sum) { lines_.emplace_back(std::move(name), sum); }

    [[nodiscard]] const std::vector<std::pair<std::string, std::uint64_t>>& lines() const { return lines_; }

private:
    std::vector<std::pair<std::string, std::uint64_t>> lines_;
};

/// Reproducible 64-bit random numbers: SplitMix64 (Steele, Lea and Flood, 2014).
class generator {
public:
    explicit generator(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }

    /// A float whose exponent field is one of `exponents` from `lowest` on.
    float next_float(std::uint32_t lowest, std::uint32_t exponents) {
        const std::uint64_t word = next();
        const auto field = lowest + static_cast<std::uint32_t>((word >> 32) % exponents);
        return std::bit_cast<float>(static_cast<std::uint32_t>(word & 0x807fffffU) | field << 23);
    }

private:
    std::uint64_t state_;
};

/// Floats of all kinds, signalling NaN among them, laid down as bits: a register of the x87 unit would make
/// quiet ones of those.
inline std::vector<float> hard_floats(std::size_t count, std::uint64_t seed) {
    generator random(seed);
    std::vector<float> result(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t word = random.next();
        std::uint32_t bits = static_cast<std::uint32_t>(word);
        if (i % 3 == 0)
            bits = (bits & 0x807fffffU) | (0x66U + static_cast<std::uint32_t>(word >> 40) % 44) << 23;
        if (i % 7 == 0) bits &= 0xfffff000U;  // exact values and ties of the formats
        if (i % 67 == 0) bits = (bits & 0x80000000U) | 0x7f800000U;
        if (i % 71 == 0) bits &= 0x80000000U;
        if (i % 73 == 0) bits &= 0x80000001U;
        std::memcpy(&result[i], &bits, sizeof bits);
    }
    return result;
}

/// Floats of moderate size.
inline std::vector<float> plain_floats(std::size_t count, std::uint64_t seed, std::uint32_t lowest = 117,
                                       std::uint32_t exponents = 14) {
    generator random(seed);
    std::vector<float> result(count);
    for (float& x : result) x = random.next_float(lowest, exponents);
    return result;
}

void add_number_checksums(report& to);
void add_more_number_checksums(report& to);
void add_function_checksums(report& to);
void add_p3109_checksums(report& to);
void add_text_checksums(report& to);
void add_array_checksums(report& to);
void add_analysis_checksums(report& to);
void add_block_checksums(report& to);
void add_product_checksums(report& to);
void add_scaling_checksums(report& to);
void add_tensor_scale_checksums(report& to);
void add_autocast_checksums(report& to);
void add_optimizer_checksums(report& to);
void add_ops_checksums(report& to);

/// What add_ops_checksums must find; the other checksums are in the file.
std::vector<std::pair<std::string, std::uint64_t>> expected_of_ops();

}  // namespace portability
