// SPDX-License-Identifier: MIT
/// \file
/// For those who come from PyTorch: the op lists of torch.autocast, its presets, GradScaler and its
/// state, and the state of its optimizers.
#pragma once

#include <mp/frontends/compat/pytorch/op_lists.hpp>
#include <mp/frontends/compat/pytorch/optimizer_state.hpp>
#include <mp/frontends/compat/pytorch/scaler.hpp>
#include <mp/frontends/compat/states.hpp>
