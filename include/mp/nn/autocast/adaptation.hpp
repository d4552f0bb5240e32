// SPDX-License-Identifier: MIT
/// \file
/// How an argument of an op reaches the kernel, and what observers see of it on the way.
#pragma once

#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/observer.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/autocast/quantise_operand.hpp>
#include <mp/nn/autocast/resolution.hpp>
#include <mp/numbers/format/operations.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// How the dispatcher hands an argument to the kernel.
enum class adaptation : unsigned char {
    forward,
    read_number,
    make_const,
    cast_number,
    stage_input,
    stage_output,
    unwrap,
    add,  ///< the result is computed apart and then added
    add_in_kernel
};

/// \tparam AddsItself       whether the kernel adds to the argument where it is a sum
/// \tparam ComputesInFloat  whether the kernel reads any format and rounds once, so that float and double
///                          need not be staged
/// \tparam Quantised        what the argument is rounded to on the way; void if it is not
/// \tparam IsInput          whether the argument is data that decides the precision
template <class Plan, bool AddsItself, bool ComputesInFloat, class Quantised, bool IsInput, class Argument>
constexpr adaptation adaptation_of() {
    using element = element_of<Argument>;
    if constexpr (is_sum_operand<Argument>) {
        return AddsItself && ComputesInFloat ? adaptation::add_in_kernel : adaptation::add;
    } else if constexpr (is_output<Argument>) {
        using result = typename Plan::output;
        if constexpr (std::is_void_v<result> || !autocast::eligible<element> || !autocast::eligible<result> ||
                      std::same_as<element, result> || (ComputesInFloat && std::same_as<result, float>)) {
            return adaptation::unwrap;
        } else {
            return adaptation::stage_output;
        }
    } else if constexpr (is_uncast_operand<Argument>) {
        return adaptation::make_const;
    } else if constexpr (IsInput) {
        using target = typename Plan::target;
        constexpr bool cast = !std::is_void_v<target> && autocast::eligible<element>;
        constexpr bool same =
            !cast || (std::is_void_v<Quantised> &&
                      (std::same_as<element, target> || (ComputesInFloat && std::floating_point<target>)));
        if constexpr (is_array_operand<Argument>) {
            return same ? adaptation::make_const : adaptation::stage_input;
        } else {
            return !cast || (std::same_as<element, target> && std::is_void_v<Quantised>)
                       ? adaptation::read_number
                       : adaptation::cast_number;
        }
    } else {
        return adaptation::forward;
    }
}

/// What the kernel writes to an output: float, where it computes in that and the result is added.
template <class Plan, bool ComputesInFloat, class Argument>
constexpr auto written_type() {
    using element = element_of<Argument>;
    if constexpr (!is_sum_operand<Argument>) {
        return std::type_identity<typename Plan::output>{};
    } else if constexpr (!autocast::eligible<element>) {
        return std::type_identity<element>{};
    } else if constexpr (ComputesInFloat) {
        return std::type_identity<float>{};
    } else {
        return std::type_identity<
            std::conditional_t<std::is_void_v<typename Plan::output>, element, typename Plan::output>>{};
    }
}

/// The view that an argument is or holds.
template <class Argument>
constexpr const auto& view_in(const Argument& argument) {
    if constexpr (is_cached_operand<Argument> || is_output_operand<Argument> || is_uncast_operand<Argument>) {
        return argument.view;
    } else {
        return argument;
    }
}

/// The type in which an observer looks at numbers: float holds those of every format that is cast.
template <class Element>
using observed = std::conditional_t<autocast::eligible<Element>, float, Element>;

/// The elements of a view in a dense array of the type in which they are looked at, on the host.
template <class View>
auto observed_copy(const cpu& exec, const View& view) {
    using traits = operand_of<View>;
    using value = observed<typename traits::element>;
    staging_buffer<value> copy(traits::size(view));
    traits::copy(exec, traits::as_input(view), traits::template dense<value>(copy.data(), view));
    return copy;
}
template <gpu_executor Executor, class View>
auto observed_copy(const Executor& exec, const View& view) {
    using traits = operand_of<View>;
    using value = observed<typename traits::element>;
    const workspace::frame frame(workspace_of(exec));
    const staging_buffer<value> on_device(exec, traits::size(view));
    traits::copy(exec, traits::as_input(view), traits::template dense<value>(on_device.data(), view));
    staging_buffer<value> copy;
    static_cast<void>(readable_by_host(exec, on_device.elements(), copy));
    return copy;
}

/// The values of a dense array in the executor's memory, as floats.
template <class Executor, class Value>
staging_buffer<float> floats_on_host(const Executor& exec, std::span<const Value> values) {
    staging_buffer<Value> room;
    const std::span<const Value> readable = readable_by_host(exec, values, room);
    staging_buffer<float> floats(readable.size());
    for (std::size_t i = 0; i < readable.size(); ++i) floats.data()[i] = static_cast<float>(readable[i]);
    return floats;
}

/// Tells the observer what a cast of numbers has done.
template <class From, class To, class Observer>
void report_cast(const Observer& observer, std::size_t index, autocast::cast_direction direction,
                 std::span<const float> before, std::span<const float> after) {
    observer.cast(index, direction, autocast::type_name<From>(), sizeof(From), autocast::cast_target_of<To>(),
                  before, after, false);
}

/// As report_cast(), for a cast of an input to Target that goes through Quantised, unless that is void. The
/// limits of Quantised are those of numbers scaled by their largest.
template <class From, class Target, class Quantised, class Observer>
void report_input_cast(const Observer& observer, std::size_t index, std::span<const float> before,
                       std::span<const float> after) {
    if constexpr (std::is_void_v<Quantised>) {
        report_cast<From, Target>(observer, index, autocast::cast_direction::input, before, after);
    } else {
        const auto scale = power_of_two<double>(scale_exponent_of<Quantised>(before));
        observer.cast(index, autocast::cast_direction::input, autocast::type_name<From>(), sizeof(From),
                      autocast::cast_target_of<Quantised>().scaled(scale), before, after, true);
    }
}

/// Tells the observer what has become of an input.
template <class Quantised, class Observer, class Executor, class Argument, class Target>
void report_input(const Observer& observer, std::size_t index, const Executor& exec, const Argument& argument,
                  std::span<const Target> to) {
    if constexpr (Observer::enabled) {
        if (!observer.records()) return;
        report_input_cast<element_of<Argument>, Target, Quantised>(
            observer, index, observed_copy(exec, view_in(argument)).elements(),
            floats_on_host(exec, to).elements());
    }
}

/// Shows the observer an array that the op reads without a cast.
template <class Observer, class Executor, class View>
void report_read(const Observer& observer, std::size_t index, const Executor& exec, const View& view) {
    if constexpr (Observer::enabled) {
        if (observer.records()) {
            observer.template read<element_of<View>>(index, observed_copy(exec, view).elements());
        }
    }
}

/// Lets the observer look for the first value that is not finite in an array that is not cast.
template <class Observer, class Executor, class View>
void look_at(const Observer& observer, std::size_t index, const Executor& exec, const View& view,
             autocast::value_origin origin) {
    if constexpr (Observer::enabled) {
        if (observer.scans()) observer.look_at(index, observed_copy(exec, view).elements(), origin);
    }
}

/// One argument on its way to the kernel. get() is what the kernel receives, finish() runs after it.
template <adaptation How, class Target, class Quantised, class Observer, class Executor, class Argument>
class argument_adaptor {  // adaptation::forward
public:
    constexpr argument_adaptor(const Executor&, const Observer&, std::size_t, Argument& argument)
        : argument_(argument) {}
    constexpr Argument& get() const { return argument_; }
    constexpr void finish() const {}

private:
    Argument& argument_;
};

/// A number that is data and not cast.
template <class Target, class Quantised, class Observer, class Executor, class Argument>
class argument_adaptor<adaptation::read_number, Target, Quantised, Observer, Executor, Argument> {
public:
    constexpr argument_adaptor(const Executor&, const Observer& observer, std::size_t index,
                               Argument& argument)
        : argument_(argument) {
        if constexpr (Observer::enabled) {
            if (!observer.records()) return;
            using number = std::remove_const_t<Argument>;
            const auto value = static_cast<observed<number>>(argument);
            observer.template read<number>(index, std::span(&value, 1));
        }
    }
    constexpr Argument& get() const { return argument_; }
    constexpr void finish() const {}

private:
    Argument& argument_;
};

}}  // namespace mp::detail
