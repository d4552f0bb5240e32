// SPDX-License-Identifier: MIT
/// \file
/// What the dispatcher casts the arguments of ops with on a GPU: launches on the executor's stream.
#pragma once

#include <mp/gpu/convert.hpp>
#include <mp/gpu/map_elements.hpp>
#include <mp/gpu/quantise_operand.hpp>
