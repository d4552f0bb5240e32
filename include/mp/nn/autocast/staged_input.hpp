// SPDX-License-Identifier: MIT
/// \file
/// Inputs of an op: cast where the plan says so, from the cache where it has the cast.
#pragma once

#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/autocast/adaptation.hpp>
#include <mp/nn/autocast/cast_cache.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/autocast/quantise_operand.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
                return quantise_operand(quantised_to<Quantised>{}, exec, floats, to);
            }
        }
        const workspace::frame frame(workspace_of(exec));
        const staging_buffer<float> values(exec, to.size());
        traits::copy(exec, traits::as_input(view), traits::template dense<float>(values.data(), view));
        quantise_operand(quantised_to<Quantised>{}, exec, values.elements(), to);
    }
}

/// cast_elements(), while the observer watches.
template <class Quantised, class Observer, class Executor, class Argument, class Target>
void watched_cast_elements(const Observer& observer, std::size_t index, const Executor& exec,
                           const Argument& argument, std::span<Target> to) {
    const typename Observer::watched_cast watched(observer, index, autocast::cast_direction::input,
                                                  to.size());
    cast_elements<Quantised>(exec, argument, to);
}

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
            quantise_operand(quantised_to<Quantised>{}, cpu{}, std::span<const float>(&from, 1),
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

template <class Target, class Quantised, class Observer, class Executor, class Argument>
class argument_adaptor<adaptation::stage_input, Target, Quantised, Observer, Executor, Argument> {
    using traits = operand_of<Argument>;

public:
    argument_adaptor(const Executor& exec, const Observer& observer, std::size_t index,
                     const Argument& argument)
        : argument_(argument), buffer_(exec, traits::size(argument)) {
        const std::span<Target> to(buffer_.data(), buffer_.elements().size());
        watched_cast_elements<Quantised>(observer, index, exec, argument, to);
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
        std::shared_ptr<void> outdated;
        if (cache != nullptr) {
            key = key_of(exec, size);
            kept_ =
                std::static_pointer_cast<const Target>(cache->find(key, argument.version, count, &outdated));
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
        if (outdated != nullptr) {
            made = std::static_pointer_cast<Target>(outdated);
        } else if (cache != nullptr) {
            made = allocate_kept<Target>(exec, size);
        }
        if (made == nullptr) buffer_ = staging_buffer<Target>(exec, size);
        const std::span<Target> to(made == nullptr ? buffer_.data() : made.get(), size);
        watched_cast_elements<Quantised>(observer, index, exec, argument, to);
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
            throw_joined<state_error>(
                {"mp::autocast: an array of ", error_text(size), " elements of type ",
                 autocast::type_name<typename traits::element>(),
                 " that was passed as cached() has been written since it was cast, and changed() of its "
                 "buffer_version was not called (weights_changed() of an mp::parameter_store calls it)"});
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

}}  // namespace mp::detail
