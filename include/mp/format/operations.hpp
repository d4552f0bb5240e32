// SPDX-License-Identifier: MIT
/// \file
/// All functions on single numbers but mathematical ones (math.hpp) and text (text.hpp).
#pragma once

#include <mp/format/arithmetic.hpp>
#include <mp/format/classification.hpp>
#include <mp/format/integral.hpp>
#include <mp/format/manipulation.hpp>
#include <mp/format/ordering.hpp>
#include <mp/format/philox.hpp>
