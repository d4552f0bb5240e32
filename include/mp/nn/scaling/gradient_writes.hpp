// SPDX-License-Identifier: MIT
/// \file
/// Which gradients the backward passes of an iteration have written, to find one that was overwritten.
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

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The gradients of an optimizer, and where each was written first. A gradient may be written part by part;
/// the same address twice means that the first result is lost. Allocates only when gradients are added.
class gradient_writes {
public:
    /// A gradient, which may be empty; in the order of the parameters.
    void add(const void* data, std::size_t bytes) {
        const auto begin = reinterpret_cast<std::uintptr_t>(data);
        const std::size_t index = count_++;
        if (bytes == 0) return;
        const auto after =
            std::upper_bound(gradients_.begin(), gradients_.end(), begin,
                             [](std::uintptr_t address, const gradient& it) { return address < it.begin; });
        gradients_.insert(after, {begin, begin + bytes, index, 0});
    }

    void note(const void* array) noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(array);
        const auto after =
            std::upper_bound(gradients_.begin(), gradients_.end(), address,
                             [](std::uintptr_t value, const gradient& it) { return value < it.begin; });
        if (after == gradients_.begin()) return;
        gradient& found = *(after - 1);
        if (address >= found.end) return;
        if (found.written == address && overwritten_ == no_index) overwritten_ = found.index;
        if (found.written == 0) found.written = address;
    }

    void forget() noexcept {
        for (gradient& it : gradients_) it.written = 0;
        overwritten_ = no_index;
    }

    /// The first parameter whose gradient was overwritten, or no_index.
    [[nodiscard]] std::size_t overwritten() const noexcept { return overwritten_; }

private:
    struct gradient {
        std::uintptr_t begin;
        std::uintptr_t end;
        std::size_t index;
        std::uintptr_t written;  ///< where it was first; 0 if it was not
    };
    std::vector<gradient> gradients_;  // by address
    std::size_t count_ = 0;
    std::size_t overwritten_ = no_index;
};

/// An optimizer that knows where its gradients are.
template <class Optimizer>
concept knows_gradient_writes = requires(Optimizer& optimizer) {
    { optimizer.gradient_writes() } -> std::same_as<gradient_writes&>;
};

/// Watches the gradients of the optimizers of an iteration, from the first backward pass on.
template <class... Optimizers>
class gradient_watch final : write_watch {
public:
    explicit gradient_watch(const std::tuple<Optimizers&...>& optimizers) : optimizers_(optimizers) {
        forget();
    }
    ~gradient_watch() { forget(); }
    gradient_watch(const gradient_watch&) = delete;
    gradient_watch& operator=(const gradient_watch&) = delete;

    /// \throws state_error  a gradient was overwritten
    void check(std::string_view function) const {
        each([&](auto& optimizer) {
            const std::size_t index = optimizer.gradient_writes().overwritten();
            if (index == no_index) return;
            std::string message(function);
            message.append(": two backward passes wrote the gradient of parameters[");
            message.append(error_text(index)).append("]");
            if constexpr (requires { optimizer.parameter_name(index); }) {
                if (const std::string_view name = optimizer.parameter_name(index); !name.empty()) {
                    message.append(" ('").append(name).append("')");
                }
            }
            message.append(
                ", so that only the last of them counts; pass it to the op as "
                "mp::ops::add_to(gradient), or allow_overwriting() if that is meant");
            throw_error(state_error(message));
        });
    }

    /// Forgets what was seen.
    void forget() const noexcept {
        each([](auto& optimizer) { optimizer.gradient_writes().forget(); });
    }

private:
    void written(const void* array, bool added) noexcept override {
        if (!added) each([array](auto& optimizer) { optimizer.gradient_writes().note(array); });
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
};

}}  // namespace mp::detail
