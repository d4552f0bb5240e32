// SPDX-License-Identifier: MIT
#include "replay.hpp"

#include <mp_replay_scaling/policies.hpp>

#include "formats.hpp"

namespace mp_python {

std::vector<policy_name> all_policies() {
    std::vector<policy_name> result;
    for (const replay_scaling::policy_entry& it : replay_scaling::all_policies)
        result.push_back({it.name, it.about});
    return result;
}

mp::replay_result replay(std::span<const mp::trace_step> trace, std::string_view policy,
                         std::string_view format) {
    const format_row& row = format_named(format);
    if (!row.is_signed)
        throw mp::argument_error("format is '" + std::string(format) + "'; it must have a sign");
    std::string names;
    for (const replay_scaling::policy_entry& it : replay_scaling::all_policies) {
        if (it.name == policy) {
            return it.replay(trace, it.name, {row.largest, row.smallest_normal, row.smallest_subnormal});
        }
        names.append(names.empty() ? "" : ", ").append(it.name);
    }
    throw mp::argument_error("policy is '" + std::string(policy) + "'; it must be one of " + names);
}

}  // namespace mp_python
