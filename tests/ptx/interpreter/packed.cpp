// SPDX-License-Identifier: MIT
// Arithmetic of numbers of 16 bits, alone and two in a word.
#include "lane_functions.hpp"
#include "numbers.hpp"

#include <cstdint>
#include <string_view>

namespace ptx {

namespace {

enum class operation { add, subtract, multiply, fused, least, largest, negate, absolute };

constexpr int operand_count(operation op) {
    if (op == operation::fused) return 3;
    return op == operation::negate || op == operation::absolute ? 1 : 2;
}

struct half_options {
    const float_format& format;
    bool flushes, saturates, clamps_below, passes_nan;
};

bool is_nan(std::uint64_t bits, const float_format& format) {
    return (bits & (format.sign_bit() - 1)) > format.exponent_mask();
}
std::uint64_t flush(std::uint64_t bits, const float_format& format) {
    return (bits & format.exponent_mask()) == 0 ? bits & format.sign_bit() : bits;
}

std::uint64_t extreme(std::uint64_t a, std::uint64_t b, bool largest, const half_options& o) {
    const bool a_nan = is_nan(a, o.format), b_nan = is_nan(b, o.format);
    if (a_nan || b_nan) {
        if (o.passes_nan || (a_nan && b_nan)) return o.format.canonical_nan();
        return a_nan ? b : a;
    }
    const double x = to_double(a, o.format), y = to_double(b, o.format);
    if (x == y) return ((a & o.format.sign_bit()) != 0) == largest ? b : a;
    return (x < y) == largest ? b : a;
}

template <operation Op>
std::uint64_t apply(std::uint64_t a, std::uint64_t b, std::uint64_t c, const half_options& o) {
    if (o.flushes) {
        a = flush(a, o.format);
        b = flush(b, o.format);
        c = flush(c, o.format);
    }
    if constexpr (Op == operation::negate)
        return is_nan(a, o.format) ? o.format.canonical_nan() : a ^ o.format.sign_bit();
    if constexpr (Op == operation::absolute)
        return is_nan(a, o.format) ? o.format.canonical_nan() : a & ~o.format.sign_bit();
    if constexpr (Op == operation::least) return extreme(a, b, false, o);
    if constexpr (Op == operation::largest) return extreme(a, b, true, o);
    const double x = to_double(a, o.format), y = to_double(b, o.format), z = to_double(c, o.format);
    // Products of two such numbers are doubles; sums of doubles are rounded to odd first.
    double exact = 0;
    if constexpr (Op == operation::add) exact = add_to_odd(x, y);
    if constexpr (Op == operation::subtract) exact = add_to_odd(x, -y);
    if constexpr (Op == operation::multiply) exact = x * y;
    if constexpr (Op == operation::fused) exact = add_to_odd(x * y, z);
    std::uint64_t result = round_double(exact, o.format, round_mode::nearest_even);
    if (is_nan(result, o.format))
        return o.saturates || o.clamps_below ? (o.saturates ? 0 : o.format.canonical_nan())
                                             : o.format.canonical_nan();
    if (o.flushes) result = flush(result, o.format);
    const bool negative = (result & o.format.sign_bit()) != 0;
    if ((o.saturates || o.clamps_below) && negative) result = 0;
    if (o.saturates && to_double(result, o.format) > 1)
        result = round_double(1.0, o.format, round_mode::nearest_even);
    return result;
}

/// detail: bfloat16, two in a word, flags.
template <operation Op>
void run(warp& w, const instruction& i, lane_mask m) {
    const half_options options{i.detail[0] != 0 ? bfloat16 : binary16, (i.detail[2] & 1) != 0,
                               (i.detail[2] & 2) != 0, (i.detail[2] & 4) != 0, (i.detail[2] & 8) != 0};
    constexpr int count = operand_count(Op);
    for_lanes(m, [&](int lane) {
        std::uint64_t x[3] = {};
        for (std::size_t k = 0; k < count; ++k) x[k] = read_lane(w, i.o[k + 1], lane);
        std::uint64_t result = apply<Op>(x[0] & 0xFFFFU, x[1] & 0xFFFFU, x[2] & 0xFFFFU, options);
        if (i.detail[1] != 0) {
            result |= apply<Op>(x[0] >> 16 & 0xFFFFU, x[1] >> 16 & 0xFFFFU, x[2] >> 16 & 0xFFFFU, options)
                      << 16;
        }
        write_lane(w, i.o[0], lane, result);
    });
}

template <operation Op>
void decode(decoder& d, instruction& to) {
    const std::string_view type = d.type();
    const bool is_pair = type.ends_with("x2");
    d.option("rn");
    const int flags = (d.option("ftz") ? 1 : 0) | (d.option("sat") ? 2 : 0) | (d.option("relu") ? 4 : 0) |
                      (d.option("NaN") ? 8 : 0);
    to.detail = {type.starts_with("bf16") ? 1 : 0, is_pair ? 1 : 0, flags, 0};
    for (std::size_t k = 0; k <= operand_count(Op); ++k) to.o[k] = d.value(k, is_pair ? 4 : 2);
    to.run = &run<Op>;
}

}  // namespace

void add_packed_instructions(instruction_table& table) {
    table["add/half"] = &decode<operation::add>;
    table["sub/half"] = &decode<operation::subtract>;
    table["mul/half"] = &decode<operation::multiply>;
    table["fma/half"] = &decode<operation::fused>;
    table["min/half"] = &decode<operation::least>;
    table["max/half"] = &decode<operation::largest>;
    table["neg/half"] = &decode<operation::negate>;
    table["abs/half"] = &decode<operation::absolute>;
}

}  // namespace ptx
