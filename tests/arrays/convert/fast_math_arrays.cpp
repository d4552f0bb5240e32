// SPDX-License-Identifier: MIT
// Also compiled with -ffast-math, which must change no bit of a converted array: not those of NaNs,
// infinities and subnormal numbers, and not those of ties.
#include <mp/convert.hpp>

#include <doctest/doctest.h>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"

namespace {

template <class From, class To>
void check() {
    const std::vector<From> from = edge_values<From, To>(4000);
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        for (const mp::projection p :
             {mp::projection{}, mp::projection{mp::rounding::upward, mp::saturation::finite}}) {
            std::vector<To> to(from.size());
            mp::convert(mp::cpu{.instructions = isa}, from, to, p);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < from.size(); ++i)
                wrong += bits_of(to[i]) != bits_of(mp::round_to<To>(from[i], p)) ? 1U : 0U;
            CAPTURE(static_cast<int>(isa));
            CAPTURE(static_cast<int>(p.round));
            CHECK(wrong == 0);
        }
    }
}

}  // namespace

TEST_CASE("arrays with NaNs, infinities, subnormal numbers and ties have the bits of single numbers") {
    check<float, mp::half>();
    check<float, mp::bfloat16>();
    check<float, mp::float8_e4m3fn>();
    check<float, mp::float8_e5m2>();
    check<float, double>();
    check<double, mp::half>();
    check<double, mp::bfloat16>();
    check<double, float>();
    check<mp::half, float>();
    check<mp::half, double>();
    check<mp::bfloat16, float>();
    check<mp::float8_e4m3fnuz, mp::half>();
    check<float, float>();
    check<double, double>();
}
