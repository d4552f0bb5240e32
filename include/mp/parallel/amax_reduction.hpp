// SPDX-License-Identifier: MIT
/// \file
/// Delayed scaling of 8-bit operands with the largest magnitudes of all ranks.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/parallel/communicator.hpp>
#include <mp/scaling/amax_history.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// A visitor of state that finds the histories in it.
struct amax_finder {
    static constexpr bool loads = false;
    [[nodiscard]] static bool applies() { return false; }

    template <class Thing>
    void operator()(std::string_view /*name*/, Thing&& thing) {
        using bare = std::remove_cvref_t<Thing>;
        if constexpr (std::is_same_v<bare, amax_history>) {
            found.push_back(&thing);
        } else if constexpr (requires { thing.visit_state(*this); }) {
            thing.visit_state(*this);
        }
    }
    template <class Value>
    void expect(std::string_view /*name*/, const Value& /*value*/) {}

    std::vector<amax_history*> found;
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::inline MP_ISA_NAMESPACE {

/// Makes the newest amax of every mp::amax_history in `models` the largest of all ranks, so that the ranks'
/// scales of 8-bit operands stay the same, as Transformer Engine's amax reduction. To be called after the last
/// backward pass of a step; one message for all of them, and none where there is no history. Collective.
///
/// \param models  layers, models of them: objects with visit_state(visitor), see mp::save_checkpoint
template <communicator Ranks, class... Models>
void reduce_amax(Ranks& ranks, Models&... models) {
    if (ranks.size() == 1) return;
    detail::amax_finder finder;
    (models.visit_state(finder), ...);
    if (finder.found.empty()) return;
    // Magnitudes are in the order of their codes.
    std::vector<std::uint64_t> codes;
    for (amax_history* it : finder.found) codes.push_back(detail::bit_cast<std::uint32_t>(it->newest()));
    (ranks.max)(codes);
    for (std::size_t i = 0; i < codes.size(); ++i) {
        finder.found[i]->newest() = detail::bit_cast<float>(static_cast<std::uint32_t>(codes[i]));
    }
}

}  // namespace mp::inline MP_ISA_NAMESPACE
