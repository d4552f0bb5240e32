// SPDX-License-Identifier: MIT
/// \file
/// Delayed scaling of 8-bit operands with the largest magnitudes of all ranks.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A visitor of state that calls a function with the newest amax of every history in it.
template <class Function>
struct newest_amax_visitor {
    static constexpr bool loads = false;
    static constexpr bool changes_histories = true;  ///< so those of a GPU are written back

    Function function;

    template <class Thing>
    void operator()(std::string_view /*name*/, Thing&& thing) {
        using bare = std::remove_cvref_t<Thing>;
        if constexpr (std::is_same_v<bare, amax_history>) {
            function(thing.newest());
        } else if constexpr (requires { thing.visit_state(*this); }) {
            thing.visit_state(*this);
        }
    }
    template <class Value>
    void expect(std::string_view /*name*/, const Value& /*value*/) {}
};

template <class Function, class... Models>
void for_each_newest_amax(const Function& function, Models&... models) {
    newest_amax_visitor<Function> visitor{function};
    (models.visit_state(visitor), ...);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Makes the newest amax of every mp::amax_history in `models` the largest of all ranks, so that the ranks'
/// scales of 8-bit operands stay the same, as Transformer Engine's amax reduction. To be called after the last
/// backward pass of a step; one message for all of them, and none where there is no history. Collective. Waits for
/// the GPU on which layers are.
///
/// \param models  layers, models of them: objects with visit_state(visitor), see mp::save_checkpoint
template <communicator Ranks, class... Models>
void reduce_amax(Ranks& ranks, Models&... models) {
    if (ranks.size() == 1) return;
    // Magnitudes are in the order of their codes.
    std::vector<std::uint64_t> codes;
    detail::for_each_newest_amax([&](float amax) { codes.push_back(detail::bit_cast<std::uint32_t>(amax)); },
                                 models...);
    if (codes.empty()) return;
    (ranks.max)(codes);
    std::size_t next = 0;
    detail::for_each_newest_amax(
        [&](float& amax) { amax = detail::bit_cast<float>(static_cast<std::uint32_t>(codes[next++])); },
        models...);
}

}}  // namespace mp
