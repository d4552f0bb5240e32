// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/frontends/interop/mpi.hpp>; to be removed in 0.3.
#pragma once
#include <mp/frontends/interop/mpi.hpp>
