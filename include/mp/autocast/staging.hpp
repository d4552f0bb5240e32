// SPDX-License-Identifier: MIT
/// \file
/// The arguments of an op on their way to its kernel: cast where a plan says so, and written back.
#pragma once

#include <mp/autocast/cast_cache.hpp>
#include <mp/autocast/observer.hpp>
#include <mp/autocast/operand.hpp>
#include <mp/autocast/quantise_factor.hpp>
#include <mp/autocast/resolution.hpp>
#include <mp/autocast/staging_buffer.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/format/operations.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// How the dispatcher hands an argument to the kernel.
enum class adaptation : unsigned char {
    forward,
    make_const,
    cast_number,
    stage_input,
    stage_output,
    unwrap,
    add,  ///< the result is computed apart and then added
    add_in_kernel
};

/// Whether the kernel of Op itself adds to the argument of this name: Op::sums lists those that it does.
template <class Op, std::size_t Index>
constexpr bool adds_itself() {
    if constexpr (requires { Op::sums; }) {
        for (const std::string_view name : Op::sums) {
            if (name == argument_name<Op>(Index)) return true;
        }
    }
    return false;
}

/// \tparam AddsItself       whether the kernel adds to the argument where it is a sum
/// \tparam ComputesInFloat  whether the kernel reads any format and rounds once, so that float and double need
///                          not be staged
/// \tparam Quantised        what the argument is rounded to on the way; void if it is not
template <class Plan, bool AddsItself, bool ComputesInFloat, class Quantised, class Argument,
          class... Arguments>
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
    } else if constexpr (is_input<Argument, Arguments...>) {
        using target = typename Plan::target;
        constexpr bool cast = !std::is_void_v<target> && autocast::eligible<element>;
        constexpr bool same =
            !cast || (std::is_void_v<Quantised> &&
                      (std::same_as<element, target> || (ComputesInFloat && std::floating_point<target>)));
        if constexpr (is_array_operand<Argument>) {
            return same ? adaptation::make_const : adaptation::stage_input;
        } else {
            return !cast || (std::same_as<element, target> && std::is_void_v<Quantised>)
                       ? adaptation::forward
                       : adaptation::cast_number;
        }
    } else {
        return adaptation::forward;
    }
}

/// The view that an argument is or holds.
template <class Argument>
constexpr const auto& view_in(const Argument& argument) {
    if constexpr (is_cached_operand<Argument> || is_output_operand<Argument>) {
        return argument.view;
    } else {
        return argument;
    }
}

/// Fills `to`, a dense array for the elements of `view` in its order, with casts of them.
template <class Quantised, class Executor, class Argument, class Target>
void cast_elements(const Executor& exec, const Argument& argument, std::span<Target> to) {
    using traits = operand_of<Argument>;
    const auto& view = view_in(argument);
    if constexpr (std::is_void_v<Quantised>) {
        traits::copy(exec, traits::as_input(view), traits::template dense<Target>(to.data(), view));
    } else {
        if constexpr (std::same_as<typename traits::element, float> &&
                      requires { traits::contiguous(view); }) {
            if (const std::span<const float> floats = traits::contiguous(view); floats.size() == to.size()) {
                return quantise_factor(quantised_to<Quantised>{}, exec, floats, to);
            }
        }
        const workspace::frame frame(workspace_of(exec));
        const staging_buffer<float> values(exec, to.size());
        traits::copy(exec, traits::as_input(view), traits::template dense<float>(values.data(), view));
        quantise_factor(quantised_to<Quantised>{}, exec, values.elements(), to);
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

/// The values of a dense array in the executor's memory as floats, on the host.
template <class Executor, class Value>
staging_buffer<float> as_float(const Executor& exec, std::span<const Value> values) {
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

/// The same for a cast of an input to Target that goes through Quantised, unless that is void. The limits of
/// Quantised are those of numbers scaled by their largest.
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
            as_float(exec, to).elements());
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

template <class Target, class Quantised, class Observer, class Executor, class Argument>
class argument_adaptor<adaptation::cast_number, Target, Quantised, Observer, Executor, Argument> {
public:
    constexpr argument_adaptor(const Executor&, const Observer& observer, std::size_t index,
                               const Argument& argument)
        : value_(cast(argument)) {
        if constexpr (Observer::enabled) {
            if (!observer.records()) return;
            const float before = static_cast<float>(argument);
            const float after = static_cast<float>(value_);
            report_input_cast<Argument, Target, Quantised>(observer, index, std::span(&before, 1),
                                                           std::span(&after, 1));
        }
    }
    constexpr Target get() const { return value_; }
    constexpr void finish() const {}

private:
    static constexpr Target cast(const Argument& argument) {
        if constexpr (std::is_void_v<Quantised>) {
            return static_cast<Target>(argument);
        } else {
            const float from = static_cast<float>(argument);
            Target to;
            quantise_factor(quantised_to<Quantised>{}, cpu{}, std::span<const float>(&from, 1),
                            std::span<Target>(&to, 1));
            return to;
        }
    }

    Target value_;
};

template <class Target, class Quantised, class Observer, class Executor, class Argument>
class argument_adaptor<adaptation::make_const, Target, Quantised, Observer, Executor, Argument> {
public:
    constexpr argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                               const Argument& argument)
        : argument_(argument) {
        report_read(observer, index, exec, view_in(argument));
    }
    constexpr auto get() const { return operand_of<Argument>::as_input(view_in(argument_)); }
    constexpr void finish() const {}

private:
    const Argument& argument_;
};

template <class Target, class Quantised, class Observer, class Executor, class View, bool ReadsOldValues>
class argument_adaptor<adaptation::unwrap, Target, Quantised, Observer, Executor,
                       autocast::output_operand<View, ReadsOldValues>> {
    using operand = autocast::output_operand<View, ReadsOldValues>;

public:
    constexpr argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                               const operand& output)
        : exec_(exec), observer_(observer), index_(index), output_(output) {
        if constexpr (ReadsOldValues) report_read(observer, index, exec, output.view);
    }
    constexpr auto get() const { return output_.view; }
    constexpr void finish() const {
        look_at(observer_, index_, exec_, output_.view, autocast::value_origin::kernel);
    }

private:
    const Executor& exec_;
    const Observer& observer_;
    std::size_t index_;
    const operand& output_;
};

template <class Target, class Quantised, class Observer, class Executor, class Argument>
class argument_adaptor<adaptation::stage_input, Target, Quantised, Observer, Executor, Argument> {
    using traits = operand_of<Argument>;

public:
    argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                     const Argument& argument)
        : argument_(argument), buffer_(exec, traits::size(argument)) {
        const std::span<Target> to(buffer_.data(), buffer_.elements().size());
        cast_elements<Quantised>(exec, argument, to);
        report_input<Quantised>(observer, index, exec, argument, buffer_.elements());
    }
    auto get() const { return traits::template dense<const Target>(buffer_.data(), argument_); }
    void finish() const {}

private:
    const Argument& argument_;
    staging_buffer<Target> buffer_;
};

/// An input whose cast may be kept: the observer's cache has it, or gets it.
template <class Target, class Quantised, class Observer, class Executor, class View>
class argument_adaptor<adaptation::stage_input, Target, Quantised, Observer, Executor,
                       autocast::cached_operand<View>> {
    using operand = autocast::cached_operand<View>;
    using traits = operand_of<View>;

public:
    argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                     const operand& argument)
        : view_(argument.view) {
        const std::size_t size = traits::size(view_);
        autocast::cast_cache* cache = nullptr;
        if constexpr (Observer::enabled) {
            if (can_keep(exec)) cache = observer.cache();
        }
        // Read before the buffer is: what changes later is not mistaken for what was cast.
        const std::uint64_t count = argument.version.count();
        autocast::cast_cache::key key{};
        if (cache != nullptr) {
            key = key_of(exec, size);
            kept_ = std::static_pointer_cast<const Target>(cache->find(key, argument.version, count));
        }
        if (kept_ != nullptr) {
            cast_ = kept_.get();
            if (cache->compares()) require_current(exec, argument, size);
            if constexpr (Observer::enabled) {
                if (observer.records()) {
                    observer.reused(index, key.from, key.to, !std::is_void_v<Quantised>);
                }
            }
            return;
        }
        std::shared_ptr<Target> made;
        if (cache != nullptr) made = allocate_kept<Target>(exec, size);
        if (made == nullptr) buffer_ = staging_buffer<Target>(exec, size);
        const std::span<Target> to(made == nullptr ? buffer_.data() : made.get(), size);
        cast_elements<Quantised>(exec, argument, to);
        report_input<Quantised>(observer, index, exec, argument, std::span<const Target>(to));
        cast_ = to.data();
        kept_ = made;
        if (cache != nullptr && made != nullptr) {
            cache->keep(key, argument.version, count, kept_, to.size_bytes());
        }
    }
    auto get() const { return traits::template dense<const Target>(cast_, view_); }
    void finish() const {}

private:
    /// Throws where the kept cast is not that of the buffer as it is now.
    void require_current(const Executor& exec, const operand& argument, std::size_t size) const {
        if constexpr (!gpu_executor<Executor>) {
            const staging_buffer<Target> again(size);
            cast_elements<Quantised>(exec, argument, std::span<Target>(again.data(), size));
            if (std::memcmp(again.data(), cast_, size * sizeof(Target)) == 0) return;
            throw_error(state_error(
                "mp::autocast: an array of " + error_text(size) + " elements of type " +
                std::string(autocast::type_name<typename traits::element>()) +
                " that was passed as cached() has been written since it was cast, and changed() of its "
                "buffer_version was not called (weights_changed() of an mp::parameter_store calls it)"));
        }
    }

    autocast::cast_cache::key key_of(const Executor& exec, std::size_t size) const {
        using named = std::conditional_t<std::is_void_v<Quantised>, Target, Quantised>;
        return {traits::address(view_),
                size,
                traits::shape(view_),
                autocast::type_name<typename traits::element>(),
                autocast::type_name<named>(),
                autocast::type_name<Target>(),
                queue_of(exec)};
    }

    const View& view_;
    std::shared_ptr<const Target> kept_;
    staging_buffer<Target> buffer_;
    const Target* cast_ = nullptr;
};

template <class Target, class Quantised, class Observer, class Executor, class View, bool ReadsOldValues>
class argument_adaptor<adaptation::stage_output, Target, Quantised, Observer, Executor,
                       autocast::output_operand<View, ReadsOldValues>> {
    using traits = operand_of<View>;
    using element = typename traits::element;

public:
    argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                     const autocast::output_operand<View, ReadsOldValues>& output)
        : exec_(exec),
          observer_(observer),
          index_(index),
          view_(output.view),
          buffer_(exec, traits::size(output.view)) {
        if constexpr (ReadsOldValues) {
            traits::copy(exec, traits::as_input(view_), get());
            report_input<void>(observer, index, exec, view_, buffer_.elements());
        }
    }
    auto get() const { return traits::template dense<Target>(buffer_.data(), view_); }
    void finish() const {
        traits::copy(exec_, traits::template dense<const Target>(buffer_.data(), view_), view_);
        if constexpr (Observer::enabled) {
            if (!observer_.records()) return;
            report_cast<Target, element>(observer_, index_, autocast::cast_direction::output,
                                         as_float(exec_, buffer_.elements()).elements(),
                                         observed_copy(exec_, view_).elements());
        }
    }

private:
    const Executor& exec_;
    const Observer& observer_;
    std::size_t index_;
    View view_;
    staging_buffer<Target> buffer_;
};

/// A sum that the kernel adds to.
template <class Target, class Quantised, class Observer, class Executor, class View>
class argument_adaptor<adaptation::add_in_kernel, Target, Quantised, Observer, Executor,
                       autocast::sum_operand<View>> {
public:
    constexpr argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                               const autocast::sum_operand<View>& sum)
        : exec_(exec), observer_(observer), index_(index), sum_(sum) {}
    constexpr const autocast::sum_operand<View>& get() const { return sum_; }
    constexpr void finish() const {
        look_at(observer_, index_, exec_, sum_.view, autocast::value_origin::kernel);
    }

private:
    const Executor& exec_;
    const Observer& observer_;
    std::size_t index_;
    const autocast::sum_operand<View>& sum_;
};

/// A sum that the kernel knows nothing of: it writes elements of type Target elsewhere, or to the sum where
/// that is of this type and nothing is to be added.
template <class Target, class Quantised, class Observer, class Executor, class View>
class argument_adaptor<adaptation::add, Target, Quantised, Observer, Executor, autocast::sum_operand<View>> {
    using traits = operand_of<View>;
    static constexpr bool same_type = std::same_as<Target, typename traits::element>;

public:
    argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                     const autocast::sum_operand<View>& sum)
        : exec_(exec), observer_(observer), index_(index), sum_(sum) {
        if (!same_type || sum.adds) buffer_ = staging_buffer<Target>(exec, traits::size(sum.view));
    }
    auto get() const {
        if constexpr (same_type) {
            if (!sum_.adds) return sum_.view;
        }
        return traits::template dense<Target>(buffer_.data(), sum_.view);
    }
    void finish() const {
        const auto result = traits::template dense<const Target>(buffer_.data(), sum_.view);
        if (sum_.adds) {
            traits::add(exec_, result, sum_.view);
        } else if constexpr (!same_type) {
            traits::copy(exec_, result, sum_.view);
        }
        look_at(observer_, index_, exec_, sum_.view, autocast::value_origin::kernel);
    }

private:
    const Executor& exec_;
    const Observer& observer_;
    std::size_t index_;
    const autocast::sum_operand<View>& sum_;
    staging_buffer<Target> buffer_;
};

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
