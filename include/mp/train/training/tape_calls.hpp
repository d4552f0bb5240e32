// SPDX-License-Identifier: MIT
/// \file
/// The recorded calls of mp::tape, in the memory of a step.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/autocast/region.hpp>
#include <mp/workspace.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Memory of a step, which is given back at once and kept for the next step.
class tape_arena {
public:
    template <class Element>
    Element* take(std::size_t count) {
        if (!frame_) frame_.emplace(&memory_);
        return memory_.template allocate<Element>(count);
    }
    /// Storage for one object.
    template <class Object>
    void* place_for() {
        static_assert(alignof(Object) <= workspace::alignment);
        return take<std::byte>(sizeof(Object));
    }
    void end_step() noexcept {
        ++step_;
        frame_.reset();
    }
    /// The number of steps that have ended.
    [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
    [[nodiscard]] std::size_t high_water() const noexcept { return memory_.high_water(); }

private:
    host_workspace memory_;
    std::optional<workspace::frame> frame_;
    std::uint64_t step_ = 0;
};

/// A recorded call; the closure follows in the derived class.
struct tape_call {
    tape_call* before;  ///< the call recorded before this one
    const void* layer;  ///< null where it is of none
    void (*run)(tape_call&, bool add);
    void (*destroy)(tape_call&) noexcept;
};

template <class Function>
struct tape_closure : tape_call {
    Function function;

    static void run_it(tape_call& call, bool add) {
        Function& f = static_cast<tape_closure&>(call).function;
        if constexpr (std::invocable<Function&, bool>) {
            static_cast<void>(f(add));
        } else {
            static_assert(std::invocable<Function&>, "mp::tape::record: the function is f() or f(bool add)");
            static_cast<void>(f());
        }
    }
    static void destroy_it(tape_call& call) noexcept { static_cast<tape_closure&>(call).~tape_closure(); }
};

/// A stack of recorded calls and of the autocast states in which they were recorded.
class tape_calls {
public:
    tape_calls() = default;
    ~tape_calls() { clear(); }
    tape_calls(const tape_calls&) = delete;
    tape_calls& operator=(const tape_calls&) = delete;

    template <class Function>
    void push(tape_arena& arena, const void* layer, Function&& function) {
        using closure = tape_closure<std::decay_t<Function>>;
        if (states_.size() == count_) states_.emplace_back();
        autocast_token& state = states_[count_];
        if (!state.is_current()) {  // as it was at this call of the last step, or at the call before
            const bool as_before = count_ != 0 && states_[count_ - 1].is_current();
            state = as_before ? states_[count_ - 1] : capture_autocast();
        }
        void* const place = arena.template place_for<closure>();
        last_ = ::new (place)
            closure{{last_, layer, closure::run_it, closure::destroy_it}, std::forward<Function>(function)};
        ++count_;
    }
    /// Runs the last call in its autocast state, and forgets it unless it throws.
    void run_last(bool add) {
        {
            const autocast_region region(states_[count_ - 1]);
            last_->run(*last_, add);
        }
        pop();
    }
    void clear() noexcept {
        while (last_ != nullptr) pop();
    }
    [[nodiscard]] bool has(const void* layer) const noexcept {
        for (const tape_call* it = last_; it != nullptr; it = it->before) {
            if (it->layer == layer) return true;
        }
        return false;
    }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }

private:
    void pop() noexcept {
        tape_call& call = *last_;
        last_ = call.before;
        --count_;
        call.destroy(call);
    }

    tape_call* last_ = nullptr;
    std::size_t count_ = 0;
    std::vector<autocast_token> states_;  ///< kept for the next step
};

}}  // namespace mp::detail
