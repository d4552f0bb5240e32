// SPDX-License-Identifier: MIT
/// \file
/// For those who come from Keras: dtype policies, regions made of them, presets and the loss scaler. A map of
/// policies by path is in <mp/frontends/compat/keras/dtype_policy_map.hpp>, which takes long to compile.
#pragma once

#include <mp/frontends/compat/keras/dtype_policy.hpp>
#include <mp/frontends/compat/keras/op_list.hpp>
#include <mp/frontends/compat/keras/scaler.hpp>
