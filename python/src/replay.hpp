// SPDX-License-Identifier: MIT
/// \file
/// What loss scalers would have made of a run.
#pragma once

#include <mp/frontends/report/replay.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp_python {

/// Names and explanations of the policies.
struct policy_name {
    std::string_view name;
    std::string_view about;
};
std::vector<policy_name> all_policies();

/// The policy with its defaults on a trace, with gradients of a format. Throws mp::argument_error for unknown names.
mp::replay_result replay(std::span<const mp::trace_step> trace, std::string_view policy,
                         std::string_view format);

}  // namespace mp_python
