// SPDX-License-Identifier: MIT
/// \file
/// Optimizers with master weights.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/optim/adafactor.hpp>
#include <mp/optim/adamw.hpp>
#include <mp/optim/lamb.hpp>
#include <mp/optim/lars.hpp>
#include <mp/optim/lion.hpp>
#include <mp/optim/optimizer_base.hpp>
#include <mp/optim/parameter.hpp>
#include <mp/optim/schedules.hpp>
#include <mp/optim/sgd.hpp>
#include <mp/optim/weight_average.hpp>
