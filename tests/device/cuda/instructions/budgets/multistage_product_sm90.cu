// SPDX-License-Identifier: MIT
// The products of multistage_product.cu in code for Hopper.
// architecture 90
// budget sass bfloat16_tiles loop HMMA through LDGSTS(?!.*ZFILL) least 64 HMMA
// budget sass bfloat16_tiles loop HMMA through LDGSTS(?!.*ZFILL) most 138 .
// budget sass bfloat16_tiles function most 0 LDL|STL
// budget sass bfloat16_columns loop HMMA through LDGSTS(?!.*ZFILL) least 64 HMMA
// budget sass bfloat16_columns loop HMMA through LDGSTS(?!.*ZFILL) most 148 .
// budget sass bfloat16_columns function most 0 LDL|STL
// budget sass wmma_tiles loop HMMA through LDGSTS(?!.*ZFILL) least 32 HMMA
// budget sass wmma_tiles loop HMMA through LDGSTS(?!.*ZFILL) most 144 .
// budget sass wmma_tiles function most 0 LD$|LD[.]|LDL|STL
#include "multistage_product.cu"
