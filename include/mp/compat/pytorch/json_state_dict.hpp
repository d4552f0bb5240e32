// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/frontends/compat/pytorch/json_state_dict.hpp>; to be removed in 0.3.
#pragma once
#include <mp/frontends/compat/pytorch/json_state_dict.hpp>
