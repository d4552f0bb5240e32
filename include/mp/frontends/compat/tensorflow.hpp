// SPDX-License-Identifier: MIT
/// \file
/// For those who come from TensorFlow: the op lists of its graph rewrite, the rewrite itself, its presets and
/// its loss scaler.
#pragma once

#include <mp/frontends/compat/tensorflow/graph_rewrite.hpp>
#include <mp/frontends/compat/tensorflow/op_lists.hpp>
#include <mp/frontends/compat/tensorflow/scaler.hpp>
