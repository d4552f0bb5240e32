// SPDX-License-Identifier: MIT
/// \file
/// All functions on single numbers but mathematical ones (math.hpp) and text (text.hpp).
#pragma once

#include <mp/numbers/format/arithmetic.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/format/closed_functions.hpp>
#include <mp/numbers/format/integral.hpp>
#include <mp/numbers/format/manipulation.hpp>
#include <mp/numbers/format/mixed_functions.hpp>
#include <mp/numbers/format/ordering.hpp>
#include <mp/numbers/format/philox.hpp>
