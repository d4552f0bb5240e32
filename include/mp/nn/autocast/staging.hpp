// SPDX-License-Identifier: MIT
/// \file
/// The arguments of an op on their way to its kernel: cast where a plan says so, and written back.
#pragma once

#include <mp/nn/autocast/adaptation.hpp>
#include <mp/nn/autocast/quantise_operand.hpp>
#include <mp/nn/autocast/staged_input.hpp>
#include <mp/nn/autocast/staged_output.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// How, and as what type, an argument goes to the kernel. Keyed by what matters about the op and not by the op,
/// so that ops share adaptors.
template <class Plan, bool AddsItself, bool ComputesInFloat, class Quantised, bool IsInput, class Observer,
          class Executor, class Argument>
struct chosen_adaptor {
    using bare = std::remove_const_t<Argument>;
    static constexpr adaptation how =
        adaptation_of<Plan, AddsItself, ComputesInFloat, Quantised, IsInput, bare>();
    static constexpr bool by_reference = how == adaptation::forward || how == adaptation::read_number;
    using target = std::conditional_t<is_output<bare>,
                                      typename decltype(written_type<Plan, ComputesInFloat, bare>())::type,
                                      typename Plan::target>;
    using type = argument_adaptor<how, target, Quantised, Observer, Executor,
                                  std::conditional_t<by_reference, Argument, bare>>;
};

}}  // namespace mp::detail
