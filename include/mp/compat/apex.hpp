// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/frontends/compat/apex.hpp>; to be removed in 0.3.
#pragma once
#include <mp/frontends/compat/apex.hpp>
