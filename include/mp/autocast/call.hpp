// SPDX-License-Identifier: MIT
/// \file
/// The dispatcher for a policy that is known at compile time: cast what needs it, call the kernel, write
/// back.
#pragma once

#include <mp/autocast/policy.hpp>
#include <mp/format/operations.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace mp::detail {

/// How the dispatcher hands an argument to the kernel.
enum class handling : unsigned char { forward, make_const, cast_number, stage_input, stage_output, unwrap };

template <class Resolution, bool ComputesInFloat, class Argument, class... Arguments>
constexpr handling handling_of() {
    using element = element_of<Argument>;
    if constexpr (is_output<Argument>) {
        using result = typename Resolution::compute;
        if constexpr (!Resolution::decides || !autocast::eligible<element> || !autocast::eligible<result> ||
                      std::same_as<element, result> || (ComputesInFloat && std::same_as<result, float>)) {
            return handling::unwrap;
        } else {
            return handling::stage_output;
        }
    } else if constexpr (is_input<Argument, Arguments...>) {
        using target = typename Resolution::template cast<Argument>;
        constexpr bool same =
            std::same_as<element, target> || (ComputesInFloat && std::same_as<target, float>);
        if constexpr (is_array_operand<Argument>) {
            return same ? handling::make_const : handling::stage_input;
        } else {
            return std::same_as<element, target> ? handling::forward : handling::cast_number;
        }
    } else {
        return handling::forward;
    }
}

/// Elements for a dense copy of an array; uninitialised.
template <class Element>
class staging_buffer {
public:
    explicit staging_buffer(std::size_t size) : elements_(std::make_unique_for_overwrite<Element[]>(size)) {}
    Element* data() const { return elements_.get(); }

private:
    std::unique_ptr<Element[]> elements_;
};

/// One argument on its way to the kernel. get() is what the kernel receives, finish() runs after it.
template <handling How, class Target, class Argument>
class argument_slot {  // handling::forward
public:
    explicit constexpr argument_slot(cpu, Argument& argument) : argument_(argument) {}
    constexpr Argument& get() const { return argument_; }
    constexpr void finish() const {}

private:
    Argument& argument_;
};

template <class Target, class Argument>
class argument_slot<handling::cast_number, Target, Argument> {
public:
    explicit constexpr argument_slot(cpu, const Argument& argument) : value_(static_cast<Target>(argument)) {}
    constexpr Target get() const { return value_; }
    constexpr void finish() const {}

private:
    Target value_;
};

template <class Target, class Argument>
class argument_slot<handling::make_const, Target, Argument> {
public:
    explicit constexpr argument_slot(cpu, const Argument& view) : view_(view) {}
    constexpr auto get() const { return operand_of<Argument>::as_input(view_); }
    constexpr void finish() const {}

private:
    const Argument& view_;
};

template <class Target, class Argument>
class argument_slot<handling::unwrap, Target, Argument> {
public:
    explicit constexpr argument_slot(cpu, const Argument& output) : output_(output) {}
    constexpr auto get() const { return output_.view; }
    constexpr void finish() const {}

private:
    const Argument& output_;
};

template <class Target, class Argument>
class argument_slot<handling::stage_input, Target, Argument> {
    using traits = operand_of<Argument>;

public:
    argument_slot(cpu exec, const Argument& view) : view_(view), buffer_(traits::size(view)) {
        traits::copy(exec, traits::as_input(view), traits::template dense<Target>(buffer_.data(), view));
    }
    auto get() const { return traits::template dense<const Target>(buffer_.data(), view_); }
    void finish() const {}

private:
    const Argument& view_;
    staging_buffer<Target> buffer_;
};

template <class Target, class View, bool ReadsOldValues>
class argument_slot<handling::stage_output, Target, autocast::output_operand<View, ReadsOldValues>> {
    using traits = operand_of<View>;

public:
    argument_slot(cpu exec, const autocast::output_operand<View, ReadsOldValues>& output)
        : exec_(exec), view_(output.view), buffer_(traits::size(output.view)) {
        if constexpr (ReadsOldValues) traits::copy(exec, traits::as_input(view_), get());
    }
    auto get() const { return traits::template dense<Target>(buffer_.data(), view_); }
    void finish() const {
        traits::copy(exec_, traits::template dense<const Target>(buffer_.data(), view_), view_);
    }

private:
    cpu exec_;
    View view_;
    staging_buffer<Target> buffer_;
};

/// Calls the kernel on the slots and writes its results back. A floating-point result that the kernel returns
/// is rounded like one that it writes to an array.
template <class Types, class Op, class... Slots>
constexpr auto call_kernel(const Op& tag, const Slots&... slots) {
    static_assert(
        requires { tag(slots.get()...); },
        "mp::autocast: the call operator of the op does not take these arguments after the casts; "
        "inputs have const elements, and outputs are marked by mp::autocast::out or in_out");
    if constexpr (std::is_void_v<decltype(tag(slots.get()...))>) {
        tag(slots.get()...);
        (slots.finish(), ...);
    } else {
        auto result = tag(slots.get()...);
        (slots.finish(), ...);
        if constexpr (Types::decides && autocast::eligible<decltype(result)> &&
                      autocast::eligible<typename Types::compute>) {
            return static_cast<typename Types::compute>(result);
        } else {
            return result;
        }
    }
}

template <class Op>
constexpr bool computes_in_float() {
    if constexpr (requires { Op::computes_in_float; }) {
        return Op::computes_in_float;
    } else {
        return false;
    }
}

template <class Types, bool ComputesInFloat, class... Arguments, class Argument>
constexpr auto make_slot(cpu exec, Argument& argument) {
    using bare = std::remove_const_t<Argument>;
    constexpr handling how = handling_of<Types, ComputesInFloat, bare, Arguments...>();
    using target =
        std::conditional_t<is_output<bare>, typename Types::compute, typename Types::template cast<bare>>;
    return argument_slot<how, target, std::conditional_t<how == handling::forward, Argument, bare>>(exec,
                                                                                                    argument);
}

template <auto Reason>
inline constexpr bool banned_because = false;

}  // namespace mp::detail

namespace mp::autocast {

/// Runs Op on the arguments under a policy that is known at compile time.
///
/// Numbers are rounded, and views of arrays that need it are converted into dense temporaries on the op's
/// executor (its first argument, if it is one), by the rule of the op's category; then the kernel, the call
/// operator of `tag`, runs. What it writes to out() arrays, or returns as a floating-point number, is rounded
/// to output_type_t once and converted from there to the caller's format. Where all types match, nothing is
/// copied and the call is the kernel's. An op with arrays leaves its numbers, such as alpha, alone.
///
///     mp::half y = mp::autocast::call<mp::autocast::fp16>(multiply_op{}, 1.5f, 2.25f);
///     mp::autocast::call<mp::autocast::bf16>(matmul_op{}, exec, a, b, mp::autocast::out(c));
///
/// Arrays of arguments may overlap only as the kernel allows. Throws what the op's validate() and kernel
/// throw; outputs that were to be cast are then unchanged. Allocates only for temporaries. The calling
/// thread's autocast region has no say, and ops that the kernel itself dispatches still follow it.
template <class Policy, op Op, class... Arguments>
    requires(!detail::follows_region<Policy>)
constexpr auto call(const Op& tag, Arguments&&... arguments) {
    static_assert(!(detail::data_but_no_operand<Arguments> || ...),
                  "mp::autocast: pass an array as std::span, or as a view that operand_traits is specialised "
                  "for (mp::matrix_view is when <mp/ops.hpp> is included), not as a container or a pointer");
    if constexpr (!allowed<Policy, Op>) {
        static_assert(
            detail::banned_because<detail::banned_reason_of<Op>()>,
            "mp::autocast: this op is banned under autocast, because its results in low precision "
            "cannot be trusted. Its banned_reason says why and what to call instead; to run it as it "
            "is, use the policy mp::autocast::off, or an override_op that lifts the ban");
    } else {
        using types = detail::resolution<Policy, Op, std::remove_cvref_t<Arguments>...>;
        constexpr bool in_float = detail::computes_in_float<Op>();
        if constexpr (requires { tag.validate(arguments...); }) tag.validate(arguments...);
        const cpu exec = detail::executor_among(arguments...);
        return detail::call_kernel<types>(
            tag, detail::make_slot<types, in_float, std::remove_cvref_t<Arguments>...>(exec, arguments)...);
    }
}

}  // namespace mp::autocast
