// SPDX-License-Identifier: MIT
/// \file
/// For those who come from Keras: dtype policies, regions made of them, presets and the loss scaler. A map of
/// policies by path is in <mp/compat/keras/dtype_policy_map.hpp>, which takes long to compile.
#pragma once

#include <mp/compat/keras/dtype_policy.hpp>
#include <mp/compat/keras/op_list.hpp>
#include <mp/compat/keras/presets.hpp>
#include <mp/compat/keras/region.hpp>
#include <mp/compat/keras/scaler.hpp>
