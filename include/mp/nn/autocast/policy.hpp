// SPDX-License-Identifier: MIT
/// \file
/// Policies: which precision an op runs in, at compile time.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/op_names.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/types.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::autocast {

/// Gives Op another category in a policy than its own, and the op whose forward Op is as well, unless that
/// has its own override. It also lifts or imposes a ban.
template <op Op, op_category Category>
struct override_op {
    using op_type = Op;
    static constexpr op_category category = Category;
};

/// Makes a policy take the categories from a list, by the names of the ops, in place of the ops' own.
template <const op_list& List>
struct use_list {
    static constexpr const op_list& list = List;
};

/// The category of an op that somebody else wrote, on one kind of device, for the whole program: specialise
/// it next to the definition of the op, before the first use.
///
///     template <mp::device_kind Device>  // on all of them
///     inline constexpr auto mp::autocast::registered_category<their_op, Device> =
///         mp::op_category::full_precision;
template <class Op, device_kind Device>
inline constexpr auto registered_category = nullptr;

/// Sources of the category of an op, from the strongest to the weakest.
enum class decided_by : unsigned char {
    call,          ///< an override that the call itself has, or that its policy has
    scope,         ///< a rule of a region
    registration,  ///< registered_category
    list,          ///< a rule of the policy's or region's list
    unlisted,      ///< what that list does with ops that it does not name
    op             ///< the op's own category: there is no list
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

constexpr std::string_view name_of(decided_by by) noexcept {
    switch (by) {
        case decided_by::call:
            return "an override of the call or policy";
        case decided_by::scope:
            return "a rule of the region";
        case decided_by::registration:
            return "its registered_category";
        case decided_by::list:
            return "the list";
        case decided_by::unlisted:
            return "not in the list";
        case decided_by::op:
            return "the op's own";
    }
    return "unknown";
}

}}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// A category that something gives to an op, if it does.
struct found_category {
    bool found = false;
    op_category category{};
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A category, and why.
struct category_decision {
    op_category category;
    autocast::decided_by by;
};

// Whether something is there is told by a bool and not by comparing a pointer with null, which g++ does not
// take for a constant expression under -fsanitize=address.

/// The list of a use_list.
template <class Override>
struct list_of {
    static constexpr bool found = false;
    static constexpr const autocast::op_list* list = nullptr;
};
template <const autocast::op_list& List>
struct list_of<autocast::use_list<List>> {
    static constexpr bool found = true;
    static constexpr const autocast::op_list* list = &List;
};

/// Number of overrides for Op, and the category of the last one.
template <class Op, class... Overrides>
struct override_of {
    template <class Override>
    static constexpr bool names() {
        if constexpr (requires { typename Override::op_type; }) {
            return std::same_as<Op, typename Override::op_type>;
        } else {
            return false;
        }
    }
    static constexpr std::size_t matches = (std::size_t{0} + ... + std::size_t{names<Overrides>()});
    static_assert(matches <= 1, "mp::autocast::policy: an op has more than one override_op");

    static constexpr op_category category = [] {
        op_category result{};
        [[maybe_unused]] const auto look_at = [&]<class Override>(std::type_identity<Override>) {
            if constexpr (names<Override>()) result = Override::category;
        };
        (look_at(std::type_identity<Overrides>{}), ...);
        return result;
    }();
};

/// The override for Op, or for the op whose backward it is.
template <class Op, class... Overrides>
constexpr found_category find_override() {
    using forward = typename forward_of<Op>::type;
    if constexpr (override_of<Op, Overrides...>::matches != 0) {
        return {true, override_of<Op, Overrides...>::category};
    } else if constexpr (!std::is_void_v<forward>) {
        return find_override<forward, Overrides...>();
    } else {
        return {};
    }
}

/// registered_category of Op or of the op whose backward it is.
template <class Op, device_kind Device>
constexpr found_category find_registration() {
    using forward = typename forward_of<Op>::type;
    if constexpr (std::same_as<decltype(autocast::registered_category<Op, Device>), const op_category>) {
        return {true, autocast::registered_category<Op, Device>};
    } else if constexpr (!std::is_void_v<forward>) {
        return find_registration<forward, Device>();
    } else {
        return {};
    }
}

}}  // namespace mp::detail

namespace mp::autocast {

/// The policy that computes in LowPrecision where the category of an op says so. Overrides are override_op
/// types, at most one for an op, and at most one use_list:
///
///     using my_policy = mp::autocast::policy<mp::half,
///     mp::autocast::use_list<mp::autocast::lists::pytorch_cuda>,
///                                            mp::autocast::override_op<softmax_op,
///                                                                      mp::op_category::lower_precision>>;
///
/// An override wins over registered_category, that over the list, and the list over the op's own category. A
/// policy of your own is any type with `enabled`, `name`, `low_precision` and `category`; `low_precision` may
/// depend on the op.
template <eligible LowPrecision, class... Overrides>
struct policy {
    /// Whether anything is cast at all.
    static constexpr bool enabled = true;
    static constexpr std::string_view name = type_name<LowPrecision>();

    template <op Op>
    using low_precision = LowPrecision;

    /// Whether there is a use_list among the overrides, and its list.
    static constexpr bool has_list = (detail::list_of<Overrides>::found || ...);
    static constexpr const op_list* list = [] {
        constexpr std::size_t lists = (std::size_t{0} + ... + std::size_t{detail::list_of<Overrides>::found});
        static_assert(lists <= 1, "mp::autocast::policy: there is more than one use_list");
        const op_list* result = nullptr;
        ((detail::list_of<Overrides>::found ? void(result = detail::list_of<Overrides>::list) : void()), ...);
        return result;
    }();

    /// The rules of the list for Op, those with conditions too; empty where something stronger decides.
    template <op Op>
    static constexpr std::span<const op_rule> rules = [] {
        std::span<const op_rule> result;
        if constexpr (!detail::find_override<Op, Overrides...>().found &&
                      !detail::find_registration<Op, device_kind::cpu>().found && has_list) {
            result = detail::rules_for(*list, detail::names_of_op<Op>);
        }
        return result;
    }();

    /// The source of the category of Op, ignoring rules with conditions.
    template <op Op>
    static constexpr detail::category_decision decision = [] {
        constexpr detail::found_category overridden = detail::find_override<Op, Overrides...>();
        constexpr detail::found_category registered = detail::find_registration<Op, device_kind::cpu>();
        if constexpr (overridden.found) {
            return detail::category_decision{overridden.category, decided_by::call};
        } else if constexpr (registered.found) {
            return detail::category_decision{registered.category, decided_by::registration};
        } else if constexpr (has_list) {
            return detail::category_decision{detail::unconditional(rules<Op>, list->unlisted),
                                             rules<Op>.empty() ? decided_by::unlisted : decided_by::list};
        } else {
            return detail::category_decision{Op::category, decided_by::op};
        }
    }();

    template <op Op>
    static constexpr op_category category = decision<Op>.category;
};

/// The policy that casts nothing: every op runs in the formats of its arguments.
struct off {
    static constexpr bool enabled = false;
    static constexpr std::string_view name = "off";

    template <op Op>
    using low_precision = void;

    template <op Op>
    static constexpr op_category category = Op::category;
};

/// IEEE half for the ops that allow it.
using fp16 = policy<half>;

/// bfloat16 for the ops that allow it.
using bf16 = policy<bfloat16>;

/// float8 for the operands of products, in the hybrid recipe of NVIDIA's Transformer Engine: Forward for what
/// a forward op multiplies and for what its backward reads again, Gradient for the gradient "dy" that a
/// backward op is given. Everything else that allows low precision is High, results included.
///
/// Each operand is multiplied by the power of two that brings its largest magnitude just below the largest
/// number of the format (current scaling, as in `Float8CurrentScaling`), rounded, and divided by it again;
/// the kernel reads the float8 values so scaled as High, which holds them exactly. Products and sums are then
/// those of a float8 matrix product with float accumulation.
template <eligible High, eligible Forward, eligible Gradient, class... Overrides>
struct float8_policy : policy<High, Overrides...> {
    static constexpr std::string_view name = "fp8_hybrid";

    /// The format that argument number Index of Op is rounded to before it is High; void if it is not.
    template <op Op, std::size_t Index>
    using quantised =
        std::conditional_t<!detail::is_product_operand<Op, Index>(), void,
                           std::conditional_t<detail::is_incoming_gradient<Op, Index>, Gradient, Forward>>;
};

/// e4m3 forward, e5m2 for gradients, bfloat16 around them.
using fp8_hybrid = float8_policy<bfloat16, float8_e4m3fn, float8_e5m2>;

/// Stands for the policy that the calling thread's autocast region chooses at run time. Overrides are those
/// of policy.
template <class... Overrides>
struct region_policy {};

/// The region's policy without overrides.
using by_region = region_policy<>;

/// The category of Op under Policy, without regard to rules with conditions. Besides override_op, a
/// specialisation of this variable changes it for one policy:
///
///     template <>
///     constexpr auto mp::autocast::category_of<mp::autocast::fp16, softmax_op> =
///         mp::op_category::lower_precision;
template <class Policy, op Op>
inline constexpr op_category category_of = Policy::template category<typename detail::original_op<Op>::type>;

/// Whether Policy lets Op run.
template <class Policy, class Op>
concept allowed = op<Op> && !(Policy::enabled && category_of<Policy, Op> == op_category::banned);

}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Policy>
inline constexpr bool follows_region = false;
template <class... Overrides>
inline constexpr bool follows_region<autocast::region_policy<Overrides...>> = true;

}}  // namespace mp::detail
