// SPDX-License-Identifier: MIT
/// \file
/// Arrays of numbers: bulk conversion and range statistics.
#pragma once

#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/convert/range_report.hpp>
