// SPDX-License-Identifier: MIT
/// \file
/// Why an op runs in the precision it does.
#pragma once

#include <mp/autocast/policy.hpp>
#include <mp/autocast/region.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::autocast {

/// What the dispatcher does with one argument; both names are "none" for arguments without floating-point
/// data and for those that the op writes.
struct explained_cast {
    std::string_view from;  ///< the type of its numbers or elements
    std::string_view to;    ///< the type that they have when the kernel sees them
};

/// The decision of a policy about one op and its argument types.
template <std::size_t ArgumentCount>
struct explanation {
    std::string_view op;            ///< the op's name
    std::string_view policy;        ///< "half", "bfloat16", "off": the policy's name
    op_category category;           ///< the category that decided
    bool overridden;                ///< whether the policy gave the op another category than its own
    bool allowed;                   ///< false if the op is banned and does not run
    std::string_view rule;          ///< what the category means, as a sentence
    std::string_view compute_type;  ///< name of compute_type_t
    std::string_view output_type;   ///< name of output_type_t
    std::array<explained_cast, ArgumentCount> arguments;

    /// The decision in one line of English.
    std::string text() const {
        std::string line(op);
        line.append(" under policy ").append(policy).append(": ").append(rule);
        line.append(" (category ").append(name_of(category));
        line.append(overridden ? ", an override of the policy)" : ", the op's own)");
        if (allowed)
            line.append("; computes in ").append(compute_type).append(", returns ").append(output_type);
        return line;
    }
};

/// Says what call<Policy> does with an op on arguments of these types, numbers or views, and which rule
/// decided. With by_region it answers for the region that the calling thread is in.
///
///     std::puts(mp::autocast::explain<mp::autocast::fp16, matmul_op, float, float>().text().c_str());
template <class Policy, op Op, class... Arguments>
    requires(!detail::follows_region<Policy>)
constexpr explanation<sizeof...(Arguments)> explain() {
    using types = detail::resolution<Policy, Op, Arguments...>;
    constexpr bool runs = allowed<Policy, Op>;
    return {Op::name,
            Policy::name,
            types::category,
            types::category != Op::category,
            runs,
            !Policy::enabled ? "autocast is off and arguments stay as they are"
            : runs           ? types::rule::sentence
                             : "the op must not run under autocast",
            type_name<typename types::compute>(),
            type_name<typename types::compute>(),
            {explained_cast{type_name<typename types::template data<Arguments>>(),
                            type_name<typename types::template cast<Arguments>>()}...}};
}

template <class Policy, op Op, class... Arguments>
    requires detail::follows_region<Policy> explanation<sizeof...(Arguments)> explain() {
        return []<class... Overrides>(region_policy<Overrides...>) {
            switch (autocast_precision()) {
                case precision::fp16:
                    return explain<policy<half, Overrides...>, Op, Arguments...>();
                case precision::bf16:
                    return explain<policy<bfloat16, Overrides...>, Op, Arguments...>();
                case precision::off:
                    break;
            }
            return explain<off, Op, Arguments...>();
        }(Policy{});
    }

}  // namespace mp::autocast
