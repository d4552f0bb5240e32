// SPDX-License-Identifier: MIT
/// \file
/// Arrays of numbers: bulk conversion and range statistics.
#pragma once

#include <mp/convert/convert.hpp>
#include <mp/convert/range_report.hpp>
