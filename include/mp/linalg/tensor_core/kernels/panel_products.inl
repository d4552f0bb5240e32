// SPDX-License-Identifier: MIT
// The inner loops of an emulated product, sixteen columns at a time: the bits of block_fma_bits. Compiled for
// each instruction set, and once for what every processor of the target has, with vectors of 16 bytes, or
// with one lane where the compiler has no vectors. All are plain operations of the compiler.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Vectors of the columns of a product. Masks are -1 or 0.
struct column_lanes {
#if defined(__GNUC__) && !defined(__CUDACC__) && !MP_X87_ARITHMETIC
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    static constexpr int count = 16;
#elif MP_TARGET_NUMBER >= MP_TARGET_AVX2
    static constexpr int count = 8;
#else
    static constexpr int count = 4;
#endif
    // NOLINTBEGIN(modernize-use-using): attributes of an alias would be those of the element
    typedef float floats __attribute__((vector_size(4 * count)));
    typedef std::int32_t ints __attribute__((vector_size(4 * count)));
    typedef std::uint32_t words __attribute__((vector_size(4 * count)));
    static constexpr int short_count = count < 16 ? 2 * count : 16;
    typedef std::int16_t shorts __attribute__((vector_size(2 * short_count)));
    // NOLINTEND(modernize-use-using)

    MP_ALWAYS_INLINE static ints truncated(floats x) { return __builtin_convertvector(x, ints); }
    MP_ALWAYS_INLINE static floats converted(ints x) { return __builtin_convertvector(x, floats); }
    MP_ALWAYS_INLINE static ints is_greater(ints a, ints b) { return a > b; }
    MP_ALWAYS_INLINE static ints is_equal(ints a, ints b) { return a == b; }
    MP_ALWAYS_INLINE static ints larger(ints a, ints b) { return a > b ? a : b; }
    MP_ALWAYS_INLINE static ints smaller(ints a, ints b) { return a < b ? a : b; }
    MP_ALWAYS_INLINE static words as_uint32(floats x) { return reinterpret_cast<words>(x); }
    MP_ALWAYS_INLINE static words as_uint32(ints x) { return reinterpret_cast<words>(x); }
    MP_ALWAYS_INLINE static ints as_int32(words x) { return reinterpret_cast<ints>(x); }
    MP_ALWAYS_INLINE static floats as_float(words x) { return reinterpret_cast<floats>(x); }
#else
    static constexpr int count = 1;
    static constexpr int short_count = 1;
    using floats = float;
    using shorts = std::int16_t;
    using ints = std::int32_t;
    using words = std::uint32_t;

    MP_ALWAYS_INLINE static ints truncated(floats x) { return static_cast<ints>(x); }
    MP_ALWAYS_INLINE static floats converted(ints x) { return opt_barrier(static_cast<floats>(x)); }
    MP_ALWAYS_INLINE static ints is_greater(ints a, ints b) { return a > b ? -1 : 0; }
    MP_ALWAYS_INLINE static ints is_equal(ints a, ints b) { return a == b ? -1 : 0; }
    MP_ALWAYS_INLINE static ints larger(ints a, ints b) { return a > b ? a : b; }
    MP_ALWAYS_INLINE static shorts larger(shorts a, int b) { return a > b ? a : static_cast<shorts>(b); }
    MP_ALWAYS_INLINE static ints smaller(ints a, ints b) { return a < b ? a : b; }
    MP_ALWAYS_INLINE static words as_uint32(floats x) { return bit_cast<words>(x); }
    MP_ALWAYS_INLINE static words as_uint32(ints x) { return static_cast<words>(x); }
    MP_ALWAYS_INLINE static ints as_int32(words x) { return static_cast<ints>(x); }
    MP_ALWAYS_INLINE static floats as_float(words x) { return bit_cast<floats>(x); }
#endif

    /// yes where the mask is -1, no where it is 0.
    MP_ALWAYS_INLINE static ints choose(ints mask, ints yes, ints no) { return (yes & mask) | (no & ~mask); }
    MP_ALWAYS_INLINE static shorts larger(shorts a, shorts b) { return a > b ? a : b; }
    MP_ALWAYS_INLINE static bool has_any(ints mask) {
        std::int32_t each[count];
        std::memcpy(each, &mask, sizeof mask);
        std::int32_t any = 0;
        for (int i = 0; i < count; ++i) any |= each[i];
        return any != 0;
    }
    MP_ALWAYS_INLINE static ints magnitude(ints x) { return larger(x, -x); }
    /// 2^x as floats, for x in [-126, 127].
    MP_ALWAYS_INLINE static floats power_of_two(ints x) { return as_float(as_uint32(x + 127) << 23); }

    MP_ALWAYS_INLINE static floats load(const float* from) {
        floats x;
        std::memcpy(&x, from, sizeof x);
        return x;
    }
    MP_ALWAYS_INLINE static ints load(const std::int32_t* from) {
        ints x;
        std::memcpy(&x, from, sizeof x);
        return x;
    }
    MP_ALWAYS_INLINE static void store(float* to, floats x) { std::memcpy(to, &x, sizeof x); }
    MP_ALWAYS_INLINE static void store(std::int32_t* to, ints x) { std::memcpy(to, &x, sizeof x); }
};

/// The largest exponent of a product, for each column.
template <int Products>
MP_ALWAYS_INLINE void largest_exponents(const block_operands& it, std::int32_t* largest) {
    using v = column_lanes;
    using shorts = v::shorts;
    for (int j = 0; j < panel_columns; j += v::short_count) {
        shorts most = shorts{} + std::int16_t{no_exponent};
        for (int p = 0; p < Products; ++p) {
            shorts b;
            std::memcpy(&b, it.b_exponents + p * panel_columns + j, sizeof b);
            most = v::larger(most, b + it.a_exponents[p]);
        }
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
        // Through memory, two stores would have to be seen by one load.
        v::ints wide;
        __asm__("vpmovsxwd %1, %0" : "=v"(wide) : "v"(most));
        v::store(largest + j, wide);
#else
        std::int16_t found[v::short_count];
        std::memcpy(found, &most, sizeof most);
        for (int i = 0; i < v::short_count; ++i) largest[j + i] = found[i];
#endif
    }
}

/// now = T(a, b, before) for the columns of a panel. Where `redo` becomes -1 rather than 0, this is not the
/// result, which must be computed by block_fma_bits; says whether there is such a column. Irregular columns
/// (-1) and rows are among them.
///
/// Why floats do for the products, whatever the compiler makes of them. Let a and b be regular, a' and b' the
/// values without their bases, in [2^-48, 2) or zero, and E the largest exponent.
/// - a' b' is exact: the significands have at most 11 bits each, and it is zero or at least 2^-96.
/// - M = a' b' 2^x with x = F - E + (the bases) is exact, too, unless M is below 2^-126 and thus cut off to
///   zero in any case: E is not below the sum of the two operands' binades, each of which is at most 48 below
///   its base, so x <= F + 96 <= 121 where the product is not zero, and |M| < 2^(F + 2) <= 2^27. Where x is
///   raised to -126, |M| stays far below one.
/// - So the conversion to an integer, which cuts off toward zero, gives the term of the rule. Products and
///   powers of two may be reassociated, rounding directions do not matter, and flushing does no harm.
///
/// Why 32 bits do for the sums. With S the largest significand of a format, a term is at most S^2 2^(F - f),
/// where f are the fraction bits of both operands:
///   half and tfloat32, 16 terms, F = 25:  16 (2^11 - 1)^2 2^5  = 2^31 - 2^21 + 2^9 < 2^31
///   bfloat16, 16 terms, F = 25:           16 (2^8 - 1)^2 2^11  = 2^31 - 2^24 + 2^15 < 2^31
///   float8, 16 terms, F = 25:             16 (2^4 - 1)^2 2^19  < 2^31, fewer for e5m2
/// and less for smaller F. The 32 terms of float8 are two sums of 16, and columns in which one of them
/// reaches 2^30 - 2^26 are done again. The addend is below 2^(F + 1) <= 2^26; where the products reach 2^31 -
/// 5 * 2^24, too, the column is done again, so the sum with it is below 2^31 - 2^24, and the float next to
/// that, too.
template <int Products, output_rule Output>
MP_ALWAYS_INLINE bool multiply_block(const block_operands& it, const block_rule& rule,
                                     std::int32_t row_irregular, const std::int32_t* irregular,
                                     const float* before, float* now, std::int32_t* redo) {
    using v = column_lanes;
    using lane_ints = v::ints;
    using lane_floats = v::floats;
    using lane_words = v::words;
    constexpr int most_at_once = Products < 16 ? Products : 16;
    constexpr std::int32_t half_limit = (1 << 30) - (1 << 26);
    constexpr std::int32_t limit = 0x7FFF'FFFF - 5 * (1 << 24);

    std::int32_t largest[panel_columns];
    largest_exponents<Products>(it, largest);

    lane_ints any{};
    for (int j = 0; j < panel_columns; j += v::count) {
        // The largest exponent of all terms. That of zero can always take part: where the addend is not zero,
        // its exponent is larger, and where it is, there is a term of zero. The addend's significand is 1.f,
        // or 0.f, which is 1.f - 1.
        const lane_words bits = v::as_uint32(v::load(before + j));
        const lane_ints field = v::as_int32(bits >> 23 & 0xFF);
        const lane_ints is_zero = v::is_equal(v::as_int32(bits << 1), lane_ints{});
        const lane_ints is_special = v::is_equal(field, lane_ints{} + 255);
        const lane_ints binade = v::larger(field, lane_ints{} + 1) - 127;
        const lane_ints addend_exponent = v::choose(
            is_zero, lane_ints{} + no_exponent, v::larger(binade, lane_ints{} + rule.least_addend_exponent));
        const lane_ints most =
            v::larger(v::larger(v::load(largest + j), addend_exponent), lane_ints{} + rule.zero_exponent);
        const lane_ints unit = most - rule.fraction_bits;

        // The addend's term. What is infinite or NaN is done again.
        const lane_ints skipped = is_zero | is_special;
        const lane_ints addend_power =
            v::choose(skipped, lane_ints{}, v::larger(binade - unit, lane_ints{} - 126));
        const lane_floats one = v::as_float((bits & 0x7F'FFFF) | 0x3F80'0000);
        const lane_ints is_subnormal = v::is_equal(field, lane_ints{});
        const lane_floats hidden = v::as_float(v::as_uint32(is_subnormal) & 0x3F80'0000);
        const lane_ints addend_magnitude = v::truncated((one - hidden) * v::power_of_two(addend_power));
        const lane_ints addend_sign = v::as_int32(bits) >> 31;
        const lane_ints addend = ((addend_magnitude ^ addend_sign) - addend_sign) & ~skipped;

        // The products' terms. Above 127 all products are zero.
        const lane_ints power = v::load(it.b_bases + j) + it.a_base - unit;
        const lane_floats scale =
            v::power_of_two(v::smaller(v::larger(power, lane_ints{} - 126), lane_ints{} + 127));
        lane_ints again = is_special | v::load(irregular + j) | row_irregular;
        lane_ints products{};
        for (int first = 0; first < Products; first += most_at_once) {
            lane_ints sum{};
            for (int p = first; p < first + most_at_once; ++p) {
                sum += v::truncated(v::load(it.b + p * panel_columns + j) * it.a[p] * scale);
            }
            if constexpr (Products > most_at_once) {
                const lane_ints large = v::is_greater(v::magnitude(sum), lane_ints{} + half_limit);
                again |= large;
                sum &= ~large;
            }
            products += sum;
        }
        const lane_ints large = v::is_greater(v::magnitude(products), lane_ints{} + limit);
        again |= large;
        const lane_ints sum = (products & ~large) + addend;

        // The number. Where the conversion rounded away from zero, in whatever direction it rounds, the float
        // before is the one that cutting off gives.
        const lane_floats nearest = v::converted(sum);
        const lane_ints back = v::truncated(nearest);
        const lane_ints away = v::is_greater(v::magnitude(back), v::magnitude(sum));
        lane_words result = v::as_uint32(nearest) + v::as_uint32(away);
        const lane_ints is_nothing = v::is_equal(sum, lane_ints{});
        if constexpr (Output == output_rule::half_nearest_even) {
            // To odd, from which half, with so few bits, is rounded as if from the sum. The bits of numbers
            // in half's normal range are rounded where they are, and a carry runs into the exponent field.
            // What is smaller is done again.
            result |= v::as_uint32(~v::is_equal(back, sum)) & 1;
            result += v::as_uint32(unit) << 23;
            const lane_words sign = result & 0x8000'0000;
            lane_words number = result & 0x7FFF'FFFF;
            again |= v::is_greater(lane_ints{} + (113 << 23), v::as_int32(number)) & ~is_nothing;
            number = (number + 0xFFF + (number >> 13 & 1)) & ~0x1FFFU;
            const lane_ints overflows = v::is_greater(v::as_int32(number), lane_ints{} + ((143 << 23) - 1));
            number = v::as_uint32(v::choose(overflows, lane_ints{} + 0x7F80'0000, v::as_int32(number)));
            result = number | sign;
        } else {
            if constexpr (Output == output_rule::e8m13_truncated) result &= ~0x3FFU;
            const lane_ints exponent = v::as_int32(result >> 23 & 0xFF) + unit;
            const lane_ints in_range =
                v::is_greater(exponent, lane_ints{}) & v::is_greater(lane_ints{} + 255, exponent);
            again |= ~(in_range | is_nothing);
            result += v::as_uint32(unit) << 23;
        }
        v::store(now + j, v::as_float(result & ~v::as_uint32(is_nothing)));
        v::store(redo + j, again);
        any |= again;
    }
    return v::has_any(any);
}

/// Adds the products of all blocks to the accumulators of rows [0, rows) and of the `columns` columns of
/// panel `panel`; there are accumulators for all columns of a panel. The rows of one block come one after the
/// other because they do not wait for each other.
template <int Products, output_rule Output>
void multiply_panel(const panel_task<operand_panels>& task, std::ptrdiff_t panel, std::ptrdiff_t rows,
                    std::ptrdiff_t columns, float* sums, std::ptrdiff_t sums_stride) {
    const operand_panels& a = *task.a;
    const operand_panels& b = *task.b;
    for (std::ptrdiff_t block = 0; block < task.blocks; ++block) {
        const std::ptrdiff_t b_at = panel * task.blocks + block;
        const std::int32_t* const irregular = b.irregular.data() + b_at * panel_columns;
        for (std::ptrdiff_t row = 0; row < rows; ++row) {
            const std::ptrdiff_t a_at = row * task.blocks + block;
            const block_operands operands{a.values.data() + a_at * Products,
                                          a.exponents.data() + a_at * Products,
                                          a.bases[static_cast<std::size_t>(a_at)],
                                          b.values.data() + b_at * Products * panel_columns,
                                          b.exponents.data() + b_at * Products * panel_columns,
                                          b.bases.data() + b_at * panel_columns};
            const std::int32_t row_irregular = a.irregular[static_cast<std::size_t>(a_at)];
            float* const before = sums + row * sums_stride;
            float now[panel_columns];
            std::int32_t redo[panel_columns];
            const bool again = multiply_block<Products, Output>(operands, task.rule, row_irregular, irregular,
                                                                before, now, redo);
            if (again) task.compute_again(row, panel, columns, block, redo, before, now);
            std::memcpy(before, now, sizeof now);
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET
