// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/frontends/check/gradient_check.hpp>; to be removed in 0.3.
#pragma once
#include <mp/frontends/check/gradient_check.hpp>
