// SPDX-License-Identifier: MIT
/// \file
/// What numerical analysts ask: formats that are chosen when the program runs, an algorithm beside itself in double, faults,
/// and histograms of errors.
#pragma once

#include <mp/arrays/analysis/bit_flips.hpp>
#include <mp/arrays/analysis/error_histogram.hpp>
#include <mp/arrays/analysis/runtime_arithmetic.hpp>
#include <mp/arrays/analysis/runtime_format.hpp>
#include <mp/arrays/analysis/tracked.hpp>
