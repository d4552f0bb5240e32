// expects: p is called probability here.*padding_idx is called padding_index here.*eps is called epsilon here.*num_heads is called heads here.*dropout_p is dropout here.*is_causal is called causal here
// SPDX-License-Identifier: MIT
#include <mp/ops.hpp>

const mp::ops::dropout_options dropout{.p = 0.1F};
const mp::ops::embedding_options embedding{.padding_idx = 0};
const mp::ops::normalization_options normalization{.eps = 1e-6F};
const mp::ops::attention_options attention{.num_heads = 8, .dropout_p = 0.1, .is_causal = true};
