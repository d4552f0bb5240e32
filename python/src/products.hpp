// SPDX-License-Identifier: MIT
/// \file
/// Matrix products as the tensor cores of GPUs return them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mp_python {

struct product_request {
    int architecture = 0;  ///< of mp::arch
    std::string a_format;
    std::string b_format;
    bool half_accumulators = false;
    bool through_half = false;  ///< mp::float8_unit
    int promotion_interval = 128;
    int threads = 1;
};

/// c = a b, row-major without gaps; c is of half or float, as the accumulators are. Throws mp::argument_error for what the
/// architecture does not multiply.
void multiply(const product_request& request, const void* a, const void* b, void* c, std::ptrdiff_t rows,
              std::ptrdiff_t columns, std::ptrdiff_t k);

}  // namespace mp_python
