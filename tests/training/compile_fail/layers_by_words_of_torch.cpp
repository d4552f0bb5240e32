// expects: eps is called epsilon here.*num_heads is called heads here.*is_causal is called causal here
// SPDX-License-Identifier: MIT
#include <mp/training.hpp>

const mp::layers::normalization_options normalization{.eps = 1e-6F};
const mp::layers::attention_options attention{.num_heads = 8, .is_causal = true};
