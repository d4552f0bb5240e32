// SPDX-License-Identifier: MIT
/// \file
/// What the dispatcher casts the arguments of ops with on a GPU: launches on the executor's stream.
#pragma once

#include <mp/device/gpu/convert.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/nn/autocast/dispatch.hpp>
#include <mp/nn/autocast/gpu/quantise_operand.hpp>
