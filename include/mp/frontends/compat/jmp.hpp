// SPDX-License-Identifier: MIT
/// \file
/// For those who come from JMP (JAX): policies in its notation, its preset and its loss scaler. Regions are
/// made of policies by options_of, as Keras's are.
#pragma once

#include <mp/frontends/compat/jmp/dtype_policy.hpp>
#include <mp/frontends/compat/jmp/presets.hpp>
#include <mp/frontends/compat/jmp/scaler.hpp>
#include <mp/frontends/compat/keras/op_list.hpp>
