// SPDX-License-Identifier: MIT
/// \file
/// The arguments of an op on their way to its kernel: cast where a plan says so, and written back.
#pragma once

#include <mp/autocast/adaptation.hpp>
#include <mp/autocast/quantise_factor.hpp>
#include <mp/autocast/staged_input.hpp>
#include <mp/autocast/staged_output.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

template <class Op, class Plan, bool ComputesInFloat, std::size_t Index, class... Arguments, class Observer,
          class Executor, class Argument>
constexpr auto make_adaptor(const Executor& exec, const Observer& observer, Argument& argument) {
    using bare = std::remove_const_t<Argument>;
    using quantised = typename quantised_format<typename Plan::quantising, Op, Index>::type;
    constexpr adaptation how =
        adaptation_of<Plan, adds_itself<Op, Index>(), ComputesInFloat, quantised, bare, Arguments...>();
    using target = std::conditional_t<is_output<bare>,
                                      typename decltype(written_type<Plan, ComputesInFloat, bare>())::type,
                                      typename Plan::target>;
    if constexpr (Observer::enabled && how == adaptation::forward && is_input<bare, Arguments...>) {
        if (observer.records()) {
            const auto value = static_cast<observed<bare>>(argument);
            observer.template read<bare>(Index, std::span(&value, 1));
        }
    }
    return argument_adaptor<how, target, quantised, Observer, Executor,
                            std::conditional_t<how == adaptation::forward, Argument, bare>>(exec, observer,
                                                                                            Index, argument);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
