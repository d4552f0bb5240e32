// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/frontends/interop/torch.hpp>; to be removed in 0.3.
#pragma once
#include <mp/frontends/interop/torch.hpp>
