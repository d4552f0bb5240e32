// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/arrays/io/npy.hpp>; to be removed in 0.3.
#pragma once
#include <mp/arrays/io/npy.hpp>
