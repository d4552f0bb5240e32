// SPDX-License-Identifier: MIT
/// \file
/// Arithmetic on arrays of narrow numbers.
#pragma once

#include <mp/array/elementwise.hpp>
#include <mp/array/functions.hpp>
#include <mp/array/reductions.hpp>
