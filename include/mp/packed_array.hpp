// SPDX-License-Identifier: MIT
/// \file
/// Arrays of numbers of fewer than 8 bits without gaps: packed_array, packed_span, pack and unpack.
#pragma once

#include <mp/arrays/convert/pack.hpp>
#include <mp/arrays/convert/packed_array.hpp>
