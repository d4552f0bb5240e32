// SPDX-License-Identifier: MIT
// Which wires give a rank's share of the gradients the bits that all ranks hold in a reduction without shares.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t elements = 3 * 4096 + 100;

/// Reduces gradients over three ranks with 24 random bits.
template <class Gradient, class Ranks>
std::vector<Gradient> reduced(Ranks& self, mp::wire_format wire, bool share_only, std::size_t& first,
                              std::size_t& last) {
    mp::parameter_store<Gradient> store;
    store.add_vector("w", static_cast<std::ptrdiff_t>(elements));
    store.build(1);
    mp::gradient_reduction reduction(mp::cpu{}, self, {.wire = wire, .share_only = share_only}, store);
    const auto gradients = store.gradients();
    for (std::size_t i = 0; i < elements; ++i) {
        const auto bits = mp::random_bits(7 + static_cast<std::uint64_t>(self.rank()), i);
        gradients[i] = static_cast<Gradient>(static_cast<float>(bits >> 8) * 0x1p-24F - 0.5F);
    }
    static_cast<void>(reduction.backward(1.0F));
    reduction.finish();
    const auto rank = static_cast<std::size_t>(self.rank());
    first = reduction.plan().buckets[0].cuts[rank];
    last = reduction.plan().buckets[0].cuts[rank + 1];
    return {gradients.begin(), gradients.begin() + static_cast<std::ptrdiff_t>(elements)};
}

template <class Gradient>
void check_bits(mp::wire_format own) {
    using enum mp::wire_format;
    for (const mp::wire_format wire : {as_stored, float32, bfloat16, half, mxfp8}) {
        CAPTURE(mp::name_of(wire));
        std::atomic<std::size_t> different = 0, compared = 0;
        mp::run_loopback(3, [&](auto& self) {
            std::size_t first = 0, last = 0;
            const auto all = reduced<Gradient>(self, wire, false, first, last);
            const auto share = reduced<Gradient>(self, wire, true, first, last);
            for (std::size_t i = first; i < last; ++i) {
                different += std::memcmp(&all[i], &share[i], sizeof(Gradient)) != 0 ? 1U : 0U;
                ++compared;
            }
        });
        CHECK(compared == elements);
        // Others round the mean once more, where it goes back to the ranks.
        CHECK((different == 0) == (wire == as_stored || wire == float32 || wire == own));
    }
}

}  // namespace

TEST_CASE("shares have the bits of whole gradients on wires that hold every gradient, and on no others") {
    check_bits<float>(mp::wire_format::float32);
    check_bits<mp::bfloat16>(mp::wire_format::bfloat16);
    check_bits<mp::half>(mp::wire_format::half);
}
