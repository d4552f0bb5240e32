// SPDX-License-Identifier: MIT
/// \file
/// Optimizers with master weights.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/optim/adafactor.hpp>
#include <mp/nn/optim/optimizer.hpp>
#include <mp/nn/optim/optimizer_base.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/schedules.hpp>
#include <mp/nn/optim/weight_average.hpp>
#include <mp/nn/optim/weight_update.hpp>
