// SPDX-License-Identifier: MIT
/// \file
/// Whether the loss scalers of all ranks are the same, before they decide together.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/base/bits.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/reducer.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A parameter or a counter as a number of 64 bits whose order is that of its values, so that the largest and
/// the smallest of all ranks are values again.
struct compared_value {
    enum class type : unsigned char { floating, narrow_floating, signed_integer, unsigned_integer, truth };
    static constexpr std::uint64_t sign = std::uint64_t{1} << 63;

    std::string name;
    type kind;
    std::uint64_t key;

    template <class Member>
    compared_value(std::string_view section, std::string_view member_name, Member member)
        : name(std::string(section).append(member_name)) {
        if constexpr (std::is_enum_v<Member>) {
            *this = compared_value(section, member_name, static_cast<std::int64_t>(member));
        } else if constexpr (std::floating_point<Member>) {
            kind = std::is_same_v<Member, float> ? type::narrow_floating : type::floating;
            const auto bits = bit_cast<std::uint64_t>(static_cast<double>(member));
            key = (bits & sign) != 0 ? ~bits : bits | sign;
        } else if constexpr (std::is_signed_v<Member>) {
            kind = type::signed_integer;
            key = static_cast<std::uint64_t>(static_cast<std::int64_t>(member)) ^ sign;
        } else {
            kind = std::is_same_v<Member, bool> ? type::truth : type::unsigned_integer;
            key = member;
        }
    }

    /// The value that a key stands for.
    [[nodiscard]] std::string text_of(std::uint64_t any) const {
        if (kind == type::truth) return error_text(any != 0);
        if (kind == type::unsigned_integer) return error_text(any);
        if (kind == type::signed_integer) return error_text(static_cast<std::int64_t>(any ^ sign));
        const auto value = bit_cast<double>((any & sign) != 0 ? any ^ sign : ~any);
        return kind == type::floating ? error_text(value) : error_text(static_cast<float>(value));
    }
};

/// The smallest and the largest of all ranks, in pairs: the complements change places.
inline std::vector<std::uint64_t> ranges_of_ranks(std::span<const std::uint64_t> values,
                                                  const reducer_reference& reducer) {
    std::vector<std::uint64_t> both;
    for (const std::uint64_t value : values) {
        both.push_back(~value);
        both.push_back(value);
    }
    (reducer.max)(both);
    for (std::size_t i = 0; i < both.size(); i += 2) both[i] = ~both[i];
    return both;
}

/// What makes scalers the same: everything that a savable policy names, and of others the scale.
template <class Policy>
std::vector<compared_value> compared_values(const Policy& policy, const scale_state_of<Policy>& state) {
    std::vector<compared_value> values;
    if constexpr (savable_policy<Policy>) {
        Policy::visit(policy, [&](std::string_view name, const auto& member) {
            values.emplace_back("policy.", name, member);
        });
        rules_type<Policy>::visit(state, [&](std::string_view name, const auto& member) {
            values.emplace_back("state.", name, member);
        });
    } else {
        values.emplace_back("state.", "scale", state.scale);
    }
    return values;
}

/// Throws rank_error in the name of `function`, on all ranks, unless scalers with this policy and state are
/// what all ranks have. All of them have to call it.
template <class Policy>
void require_same_scalers(std::string_view function, bool enabled, const Policy& policy,
                          const scale_state_of<Policy>& state, const reducer_reference& reducer) {
    const std::vector<compared_value> values = compared_values(policy, state);
    std::string policy_name;
    if constexpr (savable_policy<Policy>) policy_name = std::string_view(Policy::name);
    std::string names = policy_name;
    for (const compared_value& value : values) names.append(" ").append(value.name);

    // The names first: with other ones the ranks would not even have as many values to compare.
    const std::array<std::uint64_t, 2> kinds{enabled ? 1U : 0U, crc64(names)};
    const std::vector<std::uint64_t> of_kinds = ranges_of_ranks(kinds, reducer);
    std::string message(function);
    if (of_kinds[0] != of_kinds[1]) {
        throw_error(rank_error(message.append(": the scaler is ")
                                   .append(enabled ? "enabled on this rank, and disabled on others"
                                                   : "disabled on this rank, and enabled on others")));
    }
    if (of_kinds[2] != of_kinds[3]) {
        throw_error(
            rank_error(message.append(": the ranks have different scale policies; on this rank it is ")
                           .append(policy_name.empty() ? "one without a name" : error_text(policy_name))));
    }

    std::vector<std::uint64_t> keys;
    for (const compared_value& value : values) keys.push_back(value.key);
    const std::vector<std::uint64_t> of_values = ranges_of_ranks(keys, reducer);
    std::string differences;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t least = of_values[2 * i];
        const std::uint64_t most = of_values[2 * i + 1];
        if (least == most) continue;
        const compared_value& mine = values[i];
        differences.append(differences.empty() ? ": the scalers of the ranks differ: " : "; ");
        differences.append(mine.name).append(" is ").append(mine.text_of(mine.key));
        differences.append(" on this rank, and from ").append(mine.text_of(least));
        differences.append(" to ").append(mine.text_of(most)).append(" on all");
    }
    if (!differences.empty()) throw_joined<rank_error>({message, differences});
}

}}  // namespace mp::detail
