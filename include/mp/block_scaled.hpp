// SPDX-License-Identifier: MIT
/// \file
/// Block-scaled formats: the MX formats of OCP and NVFP4, quantisation to them and back.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/arrays/convert/dequantize.hpp>
#include <mp/arrays/convert/quantize.hpp>
