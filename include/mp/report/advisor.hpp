// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/frontends/report/advisor.hpp>; to be removed in 0.3.
#pragma once
#include <mp/frontends/report/advisor.hpp>
