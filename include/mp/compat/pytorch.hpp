// SPDX-License-Identifier: MIT
/// \file
/// For those who come from PyTorch: the op lists of torch.autocast, its presets, GradScaler and its
/// state, and the state of its optimizers.
#pragma once

#include <mp/compat/pytorch/op_list_cpu.hpp>
#include <mp/compat/pytorch/op_list_cuda.hpp>
#include <mp/compat/pytorch/op_list_mps.hpp>
#include <mp/compat/pytorch/optimizer_state.hpp>
#include <mp/compat/pytorch/presets.hpp>
#include <mp/compat/pytorch/scaler.hpp>
#include <mp/compat/pytorch/state.hpp>
