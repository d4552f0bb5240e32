// SPDX-License-Identifier: MIT
/// \file
/// For those who come from MXNet: the op lists of its amp, its presets and its loss scaler.
#pragma once

#include <mp/frontends/compat/mxnet/op_lists.hpp>
#include <mp/frontends/compat/mxnet/scaler.hpp>
