// SPDX-License-Identifier: MIT
/// \file
/// Scaler states of all systems that are read, to go on here with runs that began there: PyTorch, Apex,
/// DeepSpeed and Megatron. state_fields.hpp says what is accepted.
#pragma once

#include <mp/frontends/compat/apex/state.hpp>
#include <mp/frontends/compat/deepspeed/state.hpp>
#include <mp/frontends/compat/megatron/state.hpp>
#include <mp/frontends/compat/pytorch/state.hpp>
