// SPDX-License-Identifier: MIT
/// \file
/// What numerical analysts ask: formats that are chosen when the program runs, and arithmetic in them.
#pragma once

#include <mp/analysis/runtime_arithmetic.hpp>
#include <mp/analysis/runtime_format.hpp>
