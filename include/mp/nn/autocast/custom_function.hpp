// SPDX-License-Identifier: MIT
/// \file
/// Forward and backward passes of your own that keep to one precision, as PyTorch's custom_fwd and
/// custom_bwd.
#pragma once

#include <mp/nn/autocast/call.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/autocast/region.hpp>
#include <mp/nn/autocast/types.hpp>

#include <string_view>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Runs a function on its arguments as an op in low precision.
template <class Function>
struct function_op {
    static constexpr std::string_view name = "custom function";
    static constexpr auto category = op_category::lower_precision;
    Function& function;

    template <class... Arguments>
    decltype(auto) operator()(Arguments&&... arguments) const {
        return function(std::forward<Arguments>(arguments)...);
    }
};

}}  // namespace mp::detail

namespace mp::autocast {

/// The autocast state in which a forward pass ran, kept until its backward pass: backward() runs in the same
/// state, wherever and on whichever thread it is called.
///
///     mp::autocast::saved_state saved;
///     saved.forward([&] { mp::ops::linear(exec, x, w, b, y); });
///     ...                                                  // the region may have ended here
///     saved.backward([&] { mp::ops::linear_backward(exec, x, w, dy, dx, dw, db); });
///
/// One object belongs to one pass at a time. A saved state refers to the region's ledger, if it has one.
class saved_state {
public:
    /// Remembers the calling thread's state and returns function(arguments...).
    template <class Function, class... Arguments>
    decltype(auto) forward(Function&& function, Arguments&&... arguments) {
        token_ = capture_autocast();
        return std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
    }

    /// For a function that is written for one format. Inside a region that is on for the CPU, float and
    /// reduced arguments (numbers, spans, matrix views) are cast to Format, outputs marked by out() and
    /// in_out() are given as Format and cast back, and the function runs with autocast off, as does its
    /// backward(). Elsewhere the function gets the arguments as they are, inputs with const elements. A
    /// floating-point number that it returns has the wider of the types that it returns in both cases.
    ///
    ///     saved.forward_in<float>([](auto x, auto y) { my_fused_kernel(x, y); }, x, mp::autocast::out(y));
    template <eligible Format, class Function, class... Arguments>
    auto forward_in(Function&& function, Arguments&&... arguments) {
        token_ = {};
        const detail::function_op<Function> op{function};
        using result =
            typename detail::run_time_result<decltype(call<off>(op, arguments...)),
                                             decltype(call<policy<Format>>(op, arguments...))>::type;
        if (!autocast_active()) return static_cast<result>(call<off>(op, arguments...));
        const detail::autocast_excluded not_cast_again;
        return static_cast<result>(call<policy<Format>>(op, arguments...));
    }

    /// Returns function(arguments...), run in the state that the last forward pass remembered; with autocast
    /// off before there was one.
    template <class Function, class... Arguments>
    decltype(auto) backward(Function&& function, Arguments&&... arguments) const {
        const autocast_region region(token_);
        return std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
    }

    /// The remembered state.
    const autocast_token& token() const noexcept { return token_; }

private:
    autocast_token token_;
};

}  // namespace mp::autocast
