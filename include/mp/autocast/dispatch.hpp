// SPDX-License-Identifier: MIT
/// \file
/// The dispatcher at run time: the calling thread's autocast region chooses the policy.
#pragma once

#include <mp/autocast/call.hpp>
#include <mp/autocast/region.hpp>
#include <mp/error.hpp>

#include <concepts>
#include <string>
#include <type_traits>

namespace mp::detail {

/// The type of a result that is Results, one of them chosen at run time: the same for all, or the widest.
template <class... Results>
struct run_time_result {
    static_assert((autocast::floating<Results> && ...),
                  "mp::autocast::dispatch: the op returns types that differ between policies and are no "
                  "floating-point numbers");
    using type = autocast::widest_t<Results...>;
};
template <class First, class... Rest>
    requires(std::same_as<First, Rest>&&...)
struct run_time_result<First, Rest...> {
    using type = First;
};

template <class Op>
[[noreturn]] void throw_banned(precision active) {
    std::string message("mp::autocast::dispatch: op '");
    message.append(Op::name).append("' is banned in an autocast region of precision ");
    message.append(name_of(active)).append(": ").append(banned_reason_of<Op>().view());
    throw state_error(message);
}

/// Runs the op under Policy with autocast off, so that ops which its kernel dispatches are not cast again.
template <class Policy, class Result, class Op, class... Arguments>
Result call_in_region(const Op& tag, Arguments&... arguments) {
    if constexpr (autocast::allowed<Policy, Op>) {
        const autocast_region inner{autocast_token{}};
        return static_cast<Result>(autocast::call<Policy>(tag, arguments...));
    } else {
        throw_banned<Op>(autocast_precision());
    }
}

template <class Policy, class Op, class... Arguments>
struct result_under {
    static constexpr auto type_of() {
        if constexpr (autocast::allowed<Policy, Op>) {
            return std::type_identity<decltype(autocast::call<Policy>(std::declval<const Op&>(),
                                                                      std::declval<Arguments&>()...))>{};
        } else {
            return result_under<autocast::off, Op, Arguments...>::type_of();
        }
    }
    using type = typename decltype(type_of())::type;
};

}  // namespace mp::detail

namespace mp::autocast {

/// Runs Op on the arguments under the policy that the calling thread's autocast region chooses: fp16 means
/// policy<half, Overrides...>, bf16 means policy<bfloat16, Overrides...>, and outside of regions or in
/// one that is off nothing is cast. All three are compiled; the choice costs one thread-local load.
///
/// The kernel runs with autocast off. A floating-point result has the widest of the types that the three
/// policies return, which holds any of them exactly. Throws state_error for an op that is banned in the
/// region; otherwise as call() with the chosen policy.
template <class Policy, op Op, class... Arguments>
    requires detail::follows_region<Policy>
auto call(const Op& tag, Arguments&&... arguments) {
    return [&]<class... Overrides>(region_policy<Overrides...>) {
        using half_policy = policy<half, Overrides...>;
        using bfloat16_policy = policy<bfloat16, Overrides...>;
        using result = typename detail::run_time_result<
            typename detail::result_under<off, Op, Arguments...>::type,
            typename detail::result_under<half_policy, Op, Arguments...>::type,
            typename detail::result_under<bfloat16_policy, Op, Arguments...>::type>::type;
        switch (autocast_precision()) {
            case precision::fp16:
                return detail::call_in_region<half_policy, result>(tag, arguments...);
            case precision::bf16:
                return detail::call_in_region<bfloat16_policy, result>(tag, arguments...);
            case precision::off:
                break;
        }
        return static_cast<result>(call<off>(tag, arguments...));
    }(Policy{});
}

/// call<by_region>, or with overrides call<region_policy<Overrides...>>: see there.
///
///     mp::autocast_region region(mp::precision::bf16);
///     mp::autocast::dispatch(matmul_op{}, exec, a, b, mp::autocast::out(c));
template <class... Overrides, op Op, class... Arguments>
auto dispatch(const Op& tag, Arguments&&... arguments) {
    return call<region_policy<Overrides...>>(tag, arguments...);
}

}  // namespace mp::autocast
