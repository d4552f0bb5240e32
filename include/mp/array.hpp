// SPDX-License-Identifier: MIT
/// \file
/// Arithmetic on arrays of narrow numbers.
#pragma once

#include <mp/arrays/array/elementwise.hpp>
#include <mp/arrays/array/functions.hpp>
#include <mp/arrays/array/reductions.hpp>
