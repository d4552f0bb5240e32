// SPDX-License-Identifier: MIT
/// \file
/// For those who come from Megatron: its loss scaler and the state of it.
#pragma once

#include <mp/frontends/compat/megatron/scaler.hpp>
#include <mp/frontends/compat/states.hpp>
