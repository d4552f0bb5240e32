// SPDX-License-Identifier: MIT
/// \file
/// For those who come from MXNet: the op lists of its amp, its presets and its loss scaler.
#pragma once

#include <mp/frontends/compat/mxnet/op_list.hpp>
#include <mp/frontends/compat/mxnet/op_list_bfloat16.hpp>
#include <mp/frontends/compat/mxnet/presets.hpp>
#include <mp/frontends/compat/mxnet/scaler.hpp>
