// SPDX-License-Identifier: MIT
/// \file
/// Faults for experiments: random bits of an array, flipped and flipped back.
#pragma once

#include <mp/arrays/io/stored_elements.hpp>
#include <mp/base/bits.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp {

/// A bit of an element; the lowest is bit 0.
struct bit_flip {
    std::size_t index;
    int bit;

    friend constexpr bool operator==(const bit_flip&, const bit_flip&) = default;
};

/// Which bits are flipped: a fixed number of them, or each with a probability.
struct bit_flip_options {
    std::uint64_t seed = 0;
    std::size_t count = 0;
    double probability = 0;
    int lowest_bit = 0;    ///< only bits from this one on
    int highest_bit = -1;  ///< up to this one; -1 is the highest that the type has
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Bits that an element has: a number of 4 bits has no more, though it takes a byte.
template <class Value>
constexpr int flippable_bits() {
    if constexpr (reduced<Value>) {
        return layout_of<typename Value::format>::width;
    } else {
        return static_cast<int>(8 * sizeof(Value));
    }
}

/// Random numbers for one element: uniform in [0, 1) with 53 bits.
class element_uniforms {
public:
    element_uniforms(std::uint64_t seed, std::uint64_t element) : seed_(seed), element_(element) {}
    double next() {
        const philox4x32 block = random_block(seed_, element_, drawn_++, 0x666c6970);  // "flip"
        const std::uint64_t word = block.word[0] | std::uint64_t{block.word[1]} << 32;
        return static_cast<double>(word >> 11) * 0x1p-53;
    }

private:
    std::uint64_t seed_;
    std::uint64_t element_;
    std::uint32_t drawn_ = 0;
};

/// The bits of one element that are flipped with a probability each. One random number says which is the first, if any:
/// bit k has probability (1 - probability)^k of it. The bits behind have their own.
template <class Add>
void choose_bits(element_uniforms random, double probability, int first, int last, Add add) {
    const double choice = random.next();
    double none = 1;   // that no bit before is flipped
    double known = 0;  // that one up to this is
    int bit = first;
    for (; bit <= last; ++bit) {
        known = double_add(known, double_multiply(none, probability));
        if (choice < known) break;
        none = double_multiply(none, double_subtract(1, probability));
    }
    if (bit > last) return;
    add(bit);
    for (++bit; bit <= last; ++bit) {
        if (random.next() < probability) add(bit);
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Flips these bits of a range of numbers; again, and the range is as before.
///
/// \throws argument_error  with nothing changed: an element or a bit is not there
template <class Values>
void flip_bits(Values&& values, std::span<const bit_flip> flips) {
    const auto elements = detail::elements_of(values);
    using value = typename decltype(elements)::element_type;
    for (const bit_flip& it : flips) {
        if (it.index >= elements.size()) {
            detail::throw_argument("mp::flip_bits", "index", it.index, "must be that of an element");
        }
        if (it.bit < 0 || it.bit >= detail::flippable_bits<value>()) {
            detail::throw_argument("mp::flip_bits", "bit", it.bit, "must be one that the type has");
        }
    }
    for (const bit_flip& it : flips) {
        unsigned char bytes[sizeof(value)];
        std::memcpy(bytes, &elements[it.index], sizeof bytes);
        const int byte = std::endian::native == std::endian::little
                             ? it.bit / 8
                             : static_cast<int>(sizeof(value)) - 1 - it.bit / 8;
        bytes[byte] = static_cast<unsigned char>(bytes[byte] ^ (1U << (it.bit % 8)));
        std::memcpy(static_cast<void*>(&elements[it.index]), bytes, sizeof bytes);
    }
}

/// Flips random bits of a range of numbers and returns which, in the order of elements: a soft error, as memory and
/// registers have them. The same for a seed on every machine.
///
///     const auto faults = mp::flip_bits(weights, {.seed = 1, .probability = 1e-6});
///     ...
///     mp::flip_bits(weights, faults);                                  // undone
///     mp::flip_bits(weights, {.seed = 2, .count = 1, .lowest_bit = 10, .highest_bit = 14});   // in the exponent of a half
///
/// \throws argument_error  with nothing changed: neither or both of count and probability are given, there are fewer bits
///                         than count, or the probability or a bit is none
template <class Values>
std::vector<bit_flip> flip_bits(Values&& values, const bit_flip_options& options) {
    const auto elements = detail::elements_of(values);
    using value = typename decltype(elements)::element_type;
    constexpr int width = detail::flippable_bits<value>();
    const int first = options.lowest_bit;
    const int last = options.highest_bit == -1 ? width - 1 : options.highest_bit;
    constexpr std::string_view function = "mp::flip_bits";
    if (first < 0 || first >= width)
        detail::throw_argument(function, "lowest_bit", first, "must be one that the type has");
    if (last < first || last >= width) {
        detail::throw_argument(function, "highest_bit", last,
                               "must be one that the type has, and not below lowest_bit");
    }
    if (!(options.probability >= 0 && options.probability <= 1)) {
        detail::throw_argument(function, "probability", options.probability, "must be 0 to 1");
    }
    if ((options.count != 0) == (options.probability > 0)) {
        detail::throw_argument(function, "count", options.count, "must be given, or else probability");
    }
    const auto each = static_cast<std::uint64_t>(last - first + 1);
    if (options.count > elements.size() * each) {
        detail::throw_argument(function, "count", options.count, "must be at most the number of bits");
    }
    std::vector<bit_flip> flips;
    if (options.count != 0) {
        std::set<std::uint64_t> chosen;
        for (std::uint64_t draw = 0; chosen.size() < options.count; ++draw) {
            const philox4x32 block = detail::random_block(options.seed, draw);
            const std::uint64_t word = block.word[0] | std::uint64_t{block.word[1]} << 32;
            // The product's upper half is uniform up to 2^-64.
            chosen.insert(static_cast<std::uint64_t>(
                static_cast<detail::uint128>(word) * (elements.size() * each) >> 64));
        }
        for (const std::uint64_t it : chosen) {
            flips.push_back({detail::as<std::size_t>(it / each), first + static_cast<int>(it % each)});
        }
    } else {
        for (std::size_t i = 0; i < elements.size(); ++i) {
            detail::choose_bits({options.seed, i}, options.probability, first, last,
                                [&](int bit) { flips.push_back({i, bit}); });
        }
    }
    flip_bits(elements, std::span<const bit_flip>(flips));
    return flips;
}

}}  // namespace mp
