// SPDX-License-Identifier: MIT
/// \file
/// A backward pass that is recorded while the forward pass runs.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/autocast/region.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/arithmetic.hpp>
#include <mp/train/training/layers/embedding.hpp>
#include <mp/train/training/tensor.hpp>
#include <mp/workspace.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// Records calls of backward functions during a forward pass and runs them in reverse. There is no graph and
/// no automatic differentiation: layers bring their backward(), everything else is record()ed.
///
///     mp::tape tape;
///     for (...) {
///         const auto h = tape.call(first, exec, x);       // x: a view, or a value of this tape
///         const auto z = tape.add(exec, h, tape.call(mlp, exec, tape.call(norm, exec, h)));
///         const auto y = tape.call(head, exec, z);
///         mp::ops::softmax_cross_entropy_with_gradient(exec, y.value(), labels, y.add_to_gradient());
///         tape.backward();
///         ...
///     }
///
/// The gradients have the bits of the same calls written by hand, in which the last use of a value writes its
/// gradient, to mp::ops::add_to(dx, false), and the others before it add to that. (So in a region of low
/// precision gradients of values are not rounded to it on the way.) Each backward call runs in the autocast
/// state in which its forward call was recorded.
///
/// Closures, sums and gradients of values lie in an arena of the tape, in the memory of the host, which is
/// kept: from the second step of the same calls on the tape allocates nothing (in regions that outlive the
/// step; the state of a new region is captured anew). Values belong to one step, which backward() and clear()
/// end; using one afterwards is a state_error. Inputs, layers and executors must stay until then.
///
/// An exception that leaves a forward call of call() or add(), or any backward call, clears the tape: the calls
/// that did not run are forgotten, gradients of parameters are as the calls that ran left them, and the next
/// step may begin. Errors in the use of the tape itself leave it as it was.
///
/// Not copied, not moved, not synchronised.
class tape {
public:
    tape() = default;
    tape(const tape&) = delete;
    tape& operator=(const tape&) = delete;

    /// Records f(), or f(add) with the argument of backward(), to be called once. f is copied or moved into the
    /// arena, and destroyed after its call:
    ///
    ///     const auto y = tape.value(tape.matrix<float>(rows, columns));
    ///     mp::ops::relu(exec, x.value(), y.value());
    ///     tape.record([=] { mp::ops::relu_backward(exec, x.value(), y.gradient(), x.add_to_gradient()); });
    ///
    /// \throws state_error  in a backward pass
    template <class Function>
    void record(Function&& function) {
        require_idle("mp::tape::record");
        calls_.push(arena_, nullptr, std::forward<Function>(function));
    }

    /// layer.forward(exec, x, arguments...), and records layer.backward(exec, dy, dx, add). Any class with these
    /// functions is a layer. x is a tape_value, or a view, of which no gradient is taken. Returns a tape_value
    /// of what forward() returned.
    ///
    /// \throws state_error  in a backward pass; the layer is on the tape already, and keeps only one input
    template <class Layer, class X, class... Arguments>
    auto call(Layer& layer, cpu exec, const X& x, Arguments&&... arguments) {
        check_layer(std::addressof(layer));
        const auto input = view_of(x);
        ends_step guard(*this);
        const auto y = value(layer.forward(exec, input, std::forward<Arguments>(arguments)...));
        calls_.push(arena_, std::addressof(layer), [&layer, exec, x, y](bool add) {
            layer.backward(exec, y.gradient(), gradient_of(x), add);
        });
        guard.of = nullptr;
        return y;
    }
    /// The same for a table: rows `indices` of it, which must stay until backward(). A table that is tied to a
    /// head adds to the head's gradient: record() its backward pass with add = true.
    template <class Weight, class Activation, class Policy, class Gradient>
    tape_value<Activation> call(layers::embedding<Weight, Activation, Policy, Gradient>& layer, cpu exec,
                                std::span<const int> indices) {
        check_layer(&layer);
        ends_step guard(*this);
        const auto y =
            value(matrix<Activation>(static_cast<std::ptrdiff_t>(indices.size()), layer.weight().columns()));
        layer.forward(exec, indices, y.value());
        calls_.push(arena_, &layer, [&layer, exec, y](bool add) { layer.backward(exec, y.gradient(), add); });
        guard.of = nullptr;
        return y;
    }

    /// a + b of two values of one format, or a value and a view: a residual connection. See mp::ops::add().
    template <class Policy = autocast::by_region, class A, class B>
    auto add(cpu exec, const A& a, const B& b) {
        require_idle("mp::tape::add");
        const auto left = view_of(a);
        const auto right = view_of(b);
        ends_step guard(*this);
        using element = typename decltype(left)::value_type;
        static_assert(std::same_as<element, typename decltype(right)::value_type>,
                      "mp::tape::add: a and b must be of one format");
        const auto y = value(matrix<element>(left.rows, left.columns));
        ops::add<Policy>(exec, left, right, y.value());
        calls_.push(arena_, nullptr, [exec, a, b, y] {  // b may be a, so one at a time
            ops::add_backward<Policy>(exec, y.gradient(), gradient_of(b), ops::absent);
            ops::add_backward<Policy>(exec, y.gradient(), gradient_of(a), ops::absent);
        });
        guard.of = nullptr;
        return y;
    }

    /// A value of the step with a gradient of its shape in the arena.
    template <class Element>
    tape_value<Element> value(matrix_view<Element> view) {
        return value(view, matrix<std::remove_const_t<Element>>(view.rows, view.columns));
    }
    /// A value whose gradient is written to memory of the caller, and stays: that of an input.
    ///
    /// \throws argument_error  the gradient has another shape
    template <class Element>
    tape_value<Element> value(matrix_view<Element> view, matrix_view<std::remove_const_t<Element>> gradient) {
        constexpr std::string_view function = "mp::tape::value";
        require_idle(function);
        detail::check_equal_sizes(function, "gradient.rows", gradient.rows, "view.rows", view.rows);
        detail::check_equal_sizes(function, "gradient.columns", gradient.columns, "view.columns",
                                  view.columns);
        using held = detail::tape_gradient<std::remove_const_t<Element>>;
        return {arena_, view, ::new (arena_.place_for<held>()) held{gradient, false}};
    }
    /// Uninitialised elements in the arena, until the step ends.
    template <class Element>
    matrix_view<Element> matrix(std::ptrdiff_t rows, std::ptrdiff_t columns) {
        constexpr std::string_view function = "mp::tape::matrix";
        require_idle(function);
        const std::size_t count = detail::checked_element_count(function, rows, columns, sizeof(Element));
        return row_major(arena_.take<Element>(count), rows, columns);
    }

    /// Runs what is recorded, the last call first, each once, and ends the step. Layers write the gradients of
    /// their parameters, or add to them if `add` says so, for micro batches.
    ///
    /// \throws state_error  nothing is recorded: there was no forward pass since the last backward(); called by
    ///                      a backward call; the result of a call was used by no later call and by no loss
    void backward(bool add = false) {
        require_idle("mp::tape::backward");
        if (calls_.size() == 0) {
            detail::throw_error(
                state_error("mp::tape::backward: no call is recorded; a forward pass records calls, and one "
                            "backward pass uses them up"));
        }
        const ends_step also_by_exception(*this);
        running_ = true;
        while (calls_.size() != 0) calls_.run_last(add);
    }

    /// Forgets what is recorded and ends the step.
    ///
    /// \throws state_error  in a backward pass
    void clear() {
        require_idle("mp::tape::clear");
        forget();
    }

    /// Number of recorded calls.
    [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
    /// The most bytes that a step has taken of the arena.
    [[nodiscard]] std::size_t high_water() const noexcept { return arena_.high_water(); }

private:
    /// Ends the step at its end.
    struct ends_step {
        explicit ends_step(tape& it) : of(&it) {}
        ~ends_step() {
            if (of != nullptr) of->forget();
        }
        ends_step(const ends_step&) = delete;
        ends_step& operator=(const ends_step&) = delete;
        tape* of;
    };

    template <class Element>
    static matrix_view<const Element> view_of(const tape_value<Element>& x) {
        return x.value();
    }
    template <class Element>
    static matrix_view<const Element> view_of(matrix_view<Element> x) {
        return x;
    }
    template <class Element>
    static auto gradient_of(const tape_value<Element>& x) {
        return x.add_to_gradient();
    }
    template <class Element>
    static ops::absent_t gradient_of(matrix_view<Element> /*x*/) {
        return ops::absent;
    }

    void forget() noexcept {
        calls_.clear();
        running_ = false;
        arena_.end_step();
    }

    void require_idle(std::string_view function) const {
        if (!running_) return;
        detail::throw_joined<state_error>({function, ": called in a backward pass of this tape"});
    }
    void check_layer(const void* layer) const {
        require_idle("mp::tape::call");
        if (!calls_.has(layer)) return;
        detail::throw_error(
            state_error("mp::tape::call: the layer is on the tape already, and keeps only one input; make "
                        "another layer, or call backward() or clear() first"));
    }

    detail::tape_arena arena_;
    detail::tape_calls calls_;  ///< in the arena
    bool running_ = false;
};

}}  // namespace mp
