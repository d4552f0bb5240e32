// SPDX-License-Identifier: MIT
// What convert and convert_stochastic have to do, on any device.
#pragma once

#include <arrays/convert/projections.hpp>
#include <device/gpu/values.hpp>
#include <oracle/library.hpp>
#include <oracle/random.hpp>

#include <mp/device/gpu/convert.hpp>
#include <mp/nn/scaling/gpu/observe.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpu_test {

/// Numbers of all magnitudes: many zeros, subnormals and infinities, ties of narrower formats, and NaNs with
/// payloads, quiet and signaling.
template <class Number>
std::vector<Number> numbers_of_all_kinds(std::size_t size, unsigned seed) {
    oracle::random_bits random(seed);
    std::vector<Number> values(size);
    for (Number& value : values) {
        value = oracle::value_of<Number>(weighted_code(random, oracle::format_of<Number>));
    }
    return values;
}

/// Roundings, overflows and NaNs of all kinds.
inline std::vector<mp::projection> projections() {
    std::vector<mp::projection> result = convert_test::deterministic_projections();
    mp::projection stochastic = mp::stochastic(0xa5a5'1234, 17);
    result.push_back(stochastic);
    stochastic.saturate = mp::saturation::finite;
    stochastic.round = mp::rounding::stochastic_c;
    result.push_back(stochastic);
    return result;
}

/// Arrays to be converted, each `from_shift` elements behind a multiple of 256 bytes; where they go, each
/// `to_shift` behind one, with elements around that must stay as they are; and what has to be there then.
template <class From, class To, class Device>
class conversion_case {
public:
    conversion_case(Device& device, const std::vector<std::size_t>& sizes, std::size_t from_shift,
                    std::size_t to_shift)
        : device_(device), to_shift_(to_shift) {
        const To untouched = oracle::value_of<To>(5);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto seed = static_cast<unsigned>(i + 1 + 10 * from_shift);
            values_.push_back(numbers_of_all_kinds<From>(sizes[i], seed));
            std::vector<From> shifted(from_shift);
            shifted.insert(shifted.end(), values_[i].begin(), values_[i].end());
            from_.push_back(device.put(shifted));
            expected_.emplace_back(to_shift + sizes[i] + 3, untouched);
            to_.push_back(device.put(expected_[i]));
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            list_.push_back({from_[i].span().subspan(from_shift), to_[i].span().subspan(to_shift, sizes[i])});
        }
    }

    [[nodiscard]] const std::vector<mp::gpu_conversion<From, To>>& list() const { return list_; }

    /// Checks all results: those of the scalar conversion by projection_of(number), where the elements of all
    /// arrays are numbered through.
    template <class ProjectionOf>
    void check(ProjectionOf projection_of) {
        std::uint64_t number = 0;
        for (std::size_t i = 0; i < values_.size(); ++i) {
            for (std::size_t j = 0; j < values_[i].size(); ++j, ++number) {
                expected_[i][to_shift_ + j] = mp::round_to<To>(values_[i][j], projection_of(number));
            }
            CAPTURE(values_[i].size());
            CHECK(same_bits(device_.get(to_[i]), expected_[i]));
        }
    }

private:
    Device& device_;
    std::size_t to_shift_;
    std::vector<std::vector<From>> values_;
    std::vector<std::vector<To>> expected_;
    std::vector<typename Device::template array<From>> from_;
    std::vector<typename Device::template array<To>> to_;
    std::vector<mp::gpu_conversion<From, To>> list_;
};

/// convert of a list, and of the last array of it alone.
template <class From, class To, class Device>
void check_convert(Device& device, const std::vector<std::size_t>& sizes, std::size_t from_shift,
                   std::size_t to_shift, const mp::projection& p = {}) {
    CAPTURE(from_shift);
    CAPTURE(to_shift);
    CAPTURE(static_cast<int>(p.round));
    CAPTURE(static_cast<int>(p.saturate));
    conversion_case<From, To, Device> single(device, {sizes.back()}, from_shift, to_shift);
    conversion_case<From, To, Device> together(device, sizes, from_shift, to_shift);
    mp::convert(device.exec(), single.list()[0].from, single.list()[0].to, p);
    mp::convert(device.exec(), together.list(), p);
    single.check([&](std::uint64_t) { return p; });
    together.check([&](std::uint64_t) { return p; });
}

/// convert_stochastic of a list, whose elements are numbered through, and of the last array of it alone.
template <class From, class To, class Device>
void check_convert_stochastic(Device& device, const std::vector<std::size_t>& sizes, std::size_t from_shift,
                              std::size_t to_shift, std::uint64_t seed, std::uint64_t first_index,
                              mp::projection p = mp::stochastic(0)) {
    CAPTURE(from_shift);
    CAPTURE(to_shift);
    CAPTURE(first_index);
    conversion_case<From, To, Device> single(device, {sizes.back()}, from_shift, to_shift);
    conversion_case<From, To, Device> together(device, sizes, from_shift, to_shift);
    mp::convert_stochastic(device.exec(), single.list()[0].from, single.list()[0].to, seed, first_index, p);
    mp::convert_stochastic(device.exec(), together.list(), seed, first_index, p);
    const auto projection_of = [&](std::uint64_t number) {
        p.random = mp::random_bits(seed, first_index + number);
        return p;
    };
    single.check(projection_of);
    together.check(projection_of);
}

}  // namespace gpu_test
