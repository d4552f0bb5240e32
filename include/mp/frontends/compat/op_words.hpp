// SPDX-License-Identifier: MIT
/// \file
/// The words of list_notation.hpp as macros, for tables of ops that several lists of a system share: MP_OP_low("exp") is
/// the rule of an op in a list with a comma after it. The lists are written by the preprocessor, since a compiler takes
/// longer to fill an array of a thousand rules at compile time than to read them.
#pragma once

#include <mp/nn/autocast/list_notation.hpp>

#define MP_OP_none(name)  // the list has no rule for the op
#define MP_OP_low(name) {name ""sv, low},
#define MP_OP_full(name) {name ""sv, full},
#define MP_OP_full_output(name) {name ""sv, full_output},
#define MP_OP_append_type(name) {name ""sv, append_type},
#define MP_OP_promote(name) {name ""sv, promote},
#define MP_OP_widest(name) {name ""sv, widest},
#define MP_OP_keep(name) {name ""sv, keep},
#define MP_OP_banned(name) {name ""sv, banned, {}, {}, use_logits},
// Of MXNet's activations: full where the parameter act_type has this value.
#define MP_OP_elu(name) {name ""sv, full, "act_type"sv, "elu"sv},
#define MP_OP_selu(name) {name ""sv, full, "act_type"sv, "selu"sv},
#define MP_OP_softrelu(name) {name ""sv, full, "act_type"sv, "softrelu"sv},
