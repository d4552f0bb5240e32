// SPDX-License-Identifier: MIT
/// \file
/// Values of a step that mp::tape records, with their gradients.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/train/training/tape_calls.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The gradient of a value: all copies of the value refer to this object, in the arena.
template <class Element>
struct tape_gradient {
    matrix_view<Element> view;
    bool written;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A matrix that calls of a tape write or read, and its gradient. Made by mp::tape; copies are the same value.
/// It belongs to a step of the tape: when that has ended, its functions throw state_error. Must not be used
/// when the tape is gone. Element is const where the matrix is only read.
template <class Element>
class tape_value {
public:
    using value_type = std::remove_const_t<Element>;

    [[nodiscard]] matrix_view<Element> value() const {
        check("mp::tape_value::value");
        return view_;
    }
    /// The gradient, complete when the backward call of what wrote the value runs.
    ///
    /// \throws state_error  nothing was added to it
    [[nodiscard]] matrix_view<const Element> gradient() const {
        check("mp::tape_value::gradient");
        if (!gradient_->written) {
            detail::throw_error(
                state_error("mp::tape_value::gradient: nothing was added to it; a result must be used by a "
                            "later call or by the loss"));
        }
        return gradient_->view;
    }
    /// The gradient as an output of one op. The first op of a step writes it, later ones add to it, as with
    /// mp::ops::add_to().
    [[nodiscard]] autocast::sum_operand<matrix_view<value_type>> add_to_gradient() const {
        check("mp::tape_value::add_to_gradient");
        const bool adds = gradient_->written;
        gradient_->written = true;
        return ops::add_to(gradient_->view, adds);
    }

private:
    friend class tape;
    tape_value(const detail::tape_arena& arena, matrix_view<Element> view,
               detail::tape_gradient<value_type>* gradient)
        : arena_(&arena), step_(arena.step()), view_(view), gradient_(gradient) {}

    void check(std::string_view function) const {
        if (arena_->step() == step_) return;
        detail::throw_joined<state_error>(
            {function,
             ": the step has ended; values of a tape are good until its backward() "
             "or clear()"});
    }

    const detail::tape_arena* arena_;
    std::uint64_t step_;
    matrix_view<Element> view_;
    detail::tape_gradient<value_type>* gradient_;
};

}}  // namespace mp
