// SPDX-License-Identifier: MIT
/// \file
/// Gradients that the backward passes of an iteration write, to find overwritten and unused ones.
#pragma once

#include <mp/base/write_watch.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The gradients of an optimizer, which of them were written, and where each was first written without adding. A
/// gradient may be written part by part; the same address twice means that the first result is lost. Allocates only
/// when gradients are added.
class gradient_writes {
public:
    /// Adds a gradient, which may be empty; in the order of the parameters.
    void add(const void* data, std::size_t bytes);

    /// \param added  the former contents are part of the new ones
    void note(const void* array, bool added) noexcept;

    /// Begins or ends an iteration, in which writes are noted.
    void watch(bool on) noexcept;
    /// Lets the optimizer step, or no longer: the iteration steps it.
    MP_ALWAYS_INLINE void allow_step(bool allowed) noexcept { may_step_ = allowed; }
    /// Throws state_error if an iteration is open and does not step.
    void require_step_allowed(std::string_view function) const;
    /// Whether a gradient of another optimizer is, in part, one of these.
    [[nodiscard]] bool overlaps(const gradient_writes& other) const noexcept;

    /// Whether an iteration is open.
    [[nodiscard]] MP_ALWAYS_INLINE bool watched() const noexcept { return watched_; }
    /// Whether a write to the gradient of a parameter was noted in it.
    [[nodiscard]] MP_ALWAYS_INLINE bool written(std::size_t index) const noexcept {
        return is_written_[index] != 0;
    }

    /// The first parameter whose gradient was overwritten, or no_index.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t overwritten() const noexcept { return overwritten_; }

private:
    struct gradient {
        std::uintptr_t begin;
        std::uintptr_t end;
        std::size_t index;
        std::uintptr_t written;  ///< where it was first, without adding; 0 if it was not
    };
    std::vector<gradient> gradients_;       // by address
    std::vector<std::uint8_t> is_written_;  // by parameter
    std::size_t overwritten_ = no_index;
    bool watched_ = false;
    bool may_step_ = false;
};

/// Throws state_error in the name of `function`: the gradient of this parameter, whose name may be empty, was overwritten.
[[noreturn]] MP_CORE_FUNCTION void throw_overwritten(std::string_view function, std::size_t index,
                                                     std::string_view name);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// An optimizer that knows where its gradients are.
template <class Optimizer>
concept knows_gradient_writes = requires(Optimizer& optimizer) {
    { optimizer.gradient_writes() } -> std::same_as<gradient_writes&>;
};

/// Watches the gradients of the optimizers of an iteration, from the first backward pass on.
template <class... Optimizers>
class [[nodiscard]] gradient_watch final : write_watch {
public:
    [[nodiscard]] explicit gradient_watch(const std::tuple<Optimizers&...>& optimizers)
        : optimizers_(optimizers) {
        watch(true);
        begin_iteration();
    }
    ~gradient_watch() { stop(); }
    gradient_watch(const gradient_watch&) = delete;
    gradient_watch& operator=(const gradient_watch&) = delete;

    /// Ends the watch before the object.
    void stop() noexcept {
        if (watches_) watch(false);
        watches_ = false;
    }

    /// While it lives, the optimizers may step.
    class [[nodiscard]] steps {
    public:
        [[nodiscard]] explicit steps(const gradient_watch& watch) noexcept : watch_(watch) { allow(true); }
        ~steps() { allow(false); }
        steps(const steps&) = delete;
        steps& operator=(const steps&) = delete;

    private:
        void allow(bool allowed) const noexcept {
            watch_.each([allowed](auto& optimizer) { optimizer.gradient_writes().allow_step(allowed); });
        }
        const gradient_watch& watch_;
    };

    /// \throws argument_error  two of the optimizers have a gradient in common
    static void require_distinct(std::string_view function, const std::tuple<Optimizers&...>& optimizers) {
        constexpr std::size_t count = sizeof...(Optimizers);
        const gradient_writes* of[count] = {};
        std::apply(
            [&](auto&... optimizer) {
                std::size_t i = 0;
                const auto add = [&](auto& it) {
                    if constexpr (knows_gradient_writes<std::remove_reference_t<decltype(it)>>) {
                        of[i] = &it.gradient_writes();
                    }
                    ++i;
                };
                (add(optimizer), ...);
            },
            optimizers);
        for (std::size_t i = 1; i < count; ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                if (of[i] == nullptr || of[j] == nullptr || !of[i]->overlaps(*of[j])) continue;
                throw_argument(function, "optimizers",
                               "number " + error_text(j) + " and number " + error_text(i),
                               "must not have a gradient in common: it would be unscaled twice");
            }
        }
    }

    /// \throws state_error  a gradient was overwritten
    void check(std::string_view function) const {
        each([&](auto& optimizer) {
            const std::size_t index = optimizer.gradient_writes().overwritten();
            if (index == no_index) return;
            std::string_view name;
            if constexpr (requires { optimizer.parameter_name(index); })
                name = optimizer.parameter_name(index);
            throw_overwritten(function, index, name);
        });
    }

private:
    void written(const void* array, bool added) noexcept override {
        if (watches_) each([=](auto& optimizer) { optimizer.gradient_writes().note(array, added); });
    }
    void watch(bool on) const noexcept {
        each([on](auto& optimizer) { optimizer.gradient_writes().watch(on); });
    }

    template <class Function>
    void each(Function function) const {
        std::apply(
            [&](auto&... optimizer) {
                const auto call = [&](auto& it) {
                    if constexpr (knows_gradient_writes<std::remove_reference_t<decltype(it)>>) function(it);
                };
                (call(optimizer), ...);
            },
            optimizers_);
    }

    const std::tuple<Optimizers&...>& optimizers_;
    bool watches_ = true;
};

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void gradient_writes::add(const void* data, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    const std::size_t index = is_written_.size();
    is_written_.push_back(0);
    if (bytes == 0) return;
    const auto after =
        std::upper_bound(gradients_.begin(), gradients_.end(), begin,
                         [](std::uintptr_t address, const gradient& it) { return address < it.begin; });
    gradients_.insert(after, {begin, begin + bytes, index, 0});
}

MP_CORE_FUNCTION void gradient_writes::note(const void* array, bool added) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(array);
    const auto after =
        std::upper_bound(gradients_.begin(), gradients_.end(), address,
                         [](std::uintptr_t value, const gradient& it) { return value < it.begin; });
    if (after == gradients_.begin()) return;
    gradient& found = *(after - 1);
    if (address >= found.end) return;
    is_written_[found.index] = 1;
    if (added) return;
    if (found.written == address && overwritten_ == no_index) overwritten_ = found.index;
    if (found.written == 0) found.written = address;
}

MP_CORE_FUNCTION void gradient_writes::watch(bool on) noexcept {
    for (gradient& it : gradients_) it.written = 0;
    std::fill(is_written_.begin(), is_written_.end(), std::uint8_t{0});
    overwritten_ = no_index;
    watched_ = on;
    may_step_ = false;
}

MP_CORE_FUNCTION void gradient_writes::require_step_allowed(std::string_view function) const {
    if (!watched_ || may_step_) return;
    throw_joined<state_error>(
        {function, ": an mp::training_iteration of this optimizer is open; its finish() steps"});
}

MP_CORE_FUNCTION bool gradient_writes::overlaps(const gradient_writes& other) const noexcept {
    auto it = other.gradients_.begin();
    for (const gradient& own : gradients_) {
        while (it != other.gradients_.end() && it->end <= own.begin) ++it;
        if (it != other.gradients_.end() && it->begin < own.end) return true;
    }
    return false;
}

[[noreturn]] MP_CORE_FUNCTION void throw_overwritten(std::string_view function, std::size_t index,
                                                     std::string_view name) {
    const std::string text = name.empty() ? std::string() : " ('" + std::string(name) + "')";
    throw_joined<state_error>(
        {function, ": two backward passes wrote the gradient of parameters[", error_text(index), "]", text,
         ", so that only the last of them counts; pass it to the op as mp::ops::add_to(gradient), or "
         "allow_overwriting() if that is meant"});
}

}}  // namespace mp::detail
#endif
