// SPDX-License-Identifier: MIT
/// \file
/// The formats as a table that is looked into at run time. Arrays of numbers come as memory and a row.
#pragma once

#include <mp/arrays/convert/range_report.hpp>
#include <mp/numbers/format/projection.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mp_python {

/// How an array is rounded.
struct rounding_request {
    mp::environment environment;
    bool wants_flags = false;
    bool own_random_bits = false;  ///< each element has those of seed and index
    std::uint64_t seed = 0;
    std::uint64_t first_index = 0;
    int threads = 1;
};

struct format_row {
    const char* name;
    int width;          ///< bits
    std::size_t bytes;  ///< of an element in an array
    bool is_signed;
    bool has_infinity;
    bool has_nan;
    double largest;
    double smallest_normal;
    double smallest_subnormal;
    double epsilon;
    /// Rounds count numbers; returns the flags that were raised, if they are wanted.
    unsigned (*from_float)(const float* from, void* to, std::size_t count, const rounding_request& request);
    unsigned (*from_double)(const double* from, void* to, std::size_t count, const rounding_request& request);
    /// Exact. float holds the numbers of all formats but double, where this is null.
    void (*to_float)(const void* from, float* to, std::size_t count, int threads);
    /// Null for float and double.
    mp::range_report (*report_float)(const float* values, std::size_t count, int threads);
    mp::range_report (*report_double)(const double* values, std::size_t count, int threads);
};

std::span<const format_row> all_formats();
/// Throws mp::argument_error for a name that is no format's.
const format_row& format_named(std::string_view name);

}  // namespace mp_python
