// SPDX-License-Identifier: MIT
// The inner loops of an emulated product of 4-bit numbers with scales of blocks, sixteen columns at a time: the bits of
// mxf4nvf4_bits. Compiled for each instruction set, and once for what every processor of the target has, with vectors of 16 bytes,
// or with one lane where the compiler has no vectors. All are plain operations of the compiler on integers, but for one exact sum of doubles.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Vectors of the columns of a product. Masks are -1 or 0.
struct group_lanes {
#if defined(__GNUC__) && !defined(__CUDACC__) && !MP_X87_ARITHMETIC
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    static constexpr int count = 8;
    static constexpr int short_count = 16;
#elif MP_TARGET_NUMBER >= MP_TARGET_AVX2
    static constexpr int count = 4;
    static constexpr int short_count = 16;
#else
    static constexpr int count = 2;
    static constexpr int short_count = 8;
#endif
    // NOLINTBEGIN(modernize-use-using): attributes of an alias would be those of the element
    typedef std::int64_t longs __attribute__((vector_size(8 * count)));
    typedef std::uint64_t words __attribute__((vector_size(8 * count)));
    typedef double doubles __attribute__((vector_size(8 * count)));
    typedef std::int32_t narrow_ints __attribute__((vector_size(4 * count)));
    typedef std::int16_t narrow_shorts __attribute__((vector_size(2 * count)));
    typedef std::int16_t shorts __attribute__((vector_size(2 * short_count)));
    // NOLINTEND(modernize-use-using)

    template <class Narrow, class From>
    MP_ALWAYS_INLINE static longs widened(const From* from) {
        Narrow narrow;
        std::memcpy(&narrow, from, sizeof narrow);
        return __builtin_convertvector(narrow, longs);
    }
    MP_ALWAYS_INLINE static void store(std::int32_t* to, longs x) {
        const narrow_ints narrow = __builtin_convertvector(x, narrow_ints);
        std::memcpy(to, &narrow, sizeof narrow);
    }
    MP_ALWAYS_INLINE static longs is_greater(longs a, longs b) { return a > b; }
    MP_ALWAYS_INLINE static longs is_equal(longs a, longs b) { return a == b; }
    MP_ALWAYS_INLINE static shorts is_zero(shorts a) { return a == shorts{}; }
    MP_ALWAYS_INLINE static shorts larger(shorts a, shorts b) { return a > b ? a : b; }
    MP_ALWAYS_INLINE static shorts as_shorts(shorts x) { return x; }
    MP_ALWAYS_INLINE static words as_words(longs x) { return reinterpret_cast<words>(x); }
    MP_ALWAYS_INLINE static words as_words(doubles x) { return reinterpret_cast<words>(x); }
    MP_ALWAYS_INLINE static longs as_longs(words x) { return reinterpret_cast<longs>(x); }
    MP_ALWAYS_INLINE static doubles as_doubles(words x) { return reinterpret_cast<doubles>(x); }
#else
    static constexpr int count = 1;
    static constexpr int short_count = 1;
    using longs = std::int64_t;
    using words = std::uint64_t;
    using doubles = double;
    using narrow_ints = std::int32_t;
    using narrow_shorts = std::int16_t;
    using shorts = std::int16_t;

    template <class Narrow, class From>
    MP_ALWAYS_INLINE static longs widened(const From* from) {
        return *from;
    }
    MP_ALWAYS_INLINE static void store(std::int32_t* to, longs x) { *to = static_cast<std::int32_t>(x); }
    MP_ALWAYS_INLINE static longs is_greater(longs a, longs b) { return a > b ? -1 : 0; }
    MP_ALWAYS_INLINE static longs is_equal(longs a, longs b) { return a == b ? -1 : 0; }
    MP_ALWAYS_INLINE static shorts is_zero(shorts a) { return a == 0 ? shorts{-1} : shorts{0}; }
    MP_ALWAYS_INLINE static shorts larger(shorts a, shorts b) { return a > b ? a : b; }
    /// What arithmetic makes of shorts.
    MP_ALWAYS_INLINE static shorts as_shorts(int x) { return static_cast<shorts>(x); }
    MP_ALWAYS_INLINE static words as_words(longs x) { return static_cast<words>(x); }
    MP_ALWAYS_INLINE static words as_words(doubles x) { return bit_cast<words>(x); }
    MP_ALWAYS_INLINE static longs as_longs(words x) { return static_cast<longs>(x); }
    MP_ALWAYS_INLINE static doubles as_doubles(words x) { return bit_cast<doubles>(x); }
#endif

    MP_ALWAYS_INLINE static longs larger(longs a, longs b) { return choose(is_greater(a, b), a, b); }
    MP_ALWAYS_INLINE static longs smaller(longs a, longs b) { return choose(is_greater(a, b), b, a); }
    /// yes where the mask is -1, no where it is 0.
    MP_ALWAYS_INLINE static longs choose(longs mask, longs yes, longs no) {
        return (yes & mask) | (no & ~mask);
    }
    MP_ALWAYS_INLINE static longs shorts_at(const std::int16_t* from) { return widened<narrow_shorts>(from); }
    MP_ALWAYS_INLINE static longs ints_at(const std::int32_t* from) { return widened<narrow_ints>(from); }
    /// With the sign of `sign`, which is -1 or 0.
    MP_ALWAYS_INLINE static longs with_sign(longs magnitude, longs sign) { return (magnitude ^ sign) - sign; }
    /// Bits that are `down` places or more below the last one kept are cut off.
    MP_ALWAYS_INLINE static longs cut_off(longs magnitude, longs down) {
        return as_longs(as_words(magnitude) >> as_words(smaller(down, longs{} + 63)));
    }
};

/// Sums of the groups of a block, their exponents, and the largest of these.
struct group_sums {
    std::int16_t sums[groups_of_block][panel_columns];  ///< of four times the products
    std::int16_t exponents[groups_of_block][panel_columns];
    std::int16_t largest[panel_columns];
};

/// A block of a row of A, or of a panel of B.
struct group_operand {
    const std::int16_t* numbers;
    const std::int16_t* significands;
    const std::int16_t* exponents;
    const std::int16_t* nonzero;

    group_operand(const group_panels& from, std::ptrdiff_t vector_of_block)
        : numbers(from.numbers.data() + vector_of_block * group_block_products),
          significands(from.significands.data() + vector_of_block * groups_of_block),
          exponents(from.exponents.data() + vector_of_block * groups_of_block),
          nonzero(from.nonzero.data() + vector_of_block * groups_of_block) {}
};

MP_ALWAYS_INLINE void add_groups(const group_operand& a, const group_operand& b, std::int16_t zero_exponent,
                                 group_sums& to) {
    using v = group_lanes;
    using shorts = v::shorts;
    for (int j = 0; j < panel_columns; j += v::short_count) {
        shorts largest = shorts{} + std::int16_t{no_exponent};
        for (int g = 0; g < groups_of_block; ++g) {
            shorts sum{};
            for (int p = g * products_of_group; p < (g + 1) * products_of_group; ++p) {
                shorts column;
                std::memcpy(&column, b.numbers + p * panel_columns + j, sizeof column);
                // At most 16 * 144.
                sum = v::as_shorts(sum + column * a.numbers[p]);
            }
            shorts exponent;
            shorts any;
            std::memcpy(&exponent, b.exponents + g * panel_columns + j, sizeof exponent);
            std::memcpy(&any, b.nonzero + g * panel_columns + j, sizeof any);
            exponent = v::as_shorts(exponent + a.exponents[g]);
            any = v::as_shorts(any & a.nonzero[g]);
            const shorts zero = v::is_zero(any);
            exponent = v::as_shorts((exponent & ~zero) | ((shorts{} + zero_exponent) & zero));
            largest = v::larger(largest, exponent);
            std::memcpy(to.sums[g] + j, &sum, sizeof sum);
            std::memcpy(to.exponents[g] + j, &exponent, sizeof exponent);
        }
        std::memcpy(to.largest + j, &largest, sizeof largest);
    }
}

/// now = T(a, b, before) for the columns of a panel. Where `redo` becomes -1 rather than 0, this is not the result, which must be
/// computed by mxf4nvf4_bits; says whether there is such a column.
///
/// In units of 2^(largest exponent - 35), a term is |sum| * significands * 2^27 cut off by the difference of the exponents, where
/// |sum| <= 16 * 144 and the significands' product is at most 15^2: below 2^47. The addend is its significand * 2^12, cut off so.
/// Their sum is below 2^50, so it is exact as a double, whose bits, cut off, are those of the float.
MP_ALWAYS_INLINE bool multiply_group_block(const group_sums& it, const std::int16_t* a_significands,
                                           const std::int16_t* b_significands, const block_rule& rule,
                                           std::int32_t row_irregular, const std::int32_t* irregular,
                                           const float* before, float* now, std::int32_t* redo) {
    using v = group_lanes;
    using longs = v::longs;
    std::int32_t bits_before[panel_columns];
    std::int32_t bits_now[panel_columns];
    std::memcpy(bits_before, before, sizeof bits_before);
    longs any{};
    for (int j = 0; j < panel_columns; j += v::count) {
        const longs bits = v::ints_at(bits_before + j);
        const longs field = bits >> 23 & 0xFF;
        const longs fraction = bits & 0x7F'FFFF;
        const longs is_subnormal = v::is_equal(field, longs{});
        const longs is_nothing = v::is_equal(bits & 0x7FFF'FFFF, longs{});
        const longs significand = fraction | ((longs{} + (1 << 23)) & ~is_subnormal);
        const longs binade = v::larger(field, longs{} + 1) - 127;
        const longs addend_exponent = v::choose(is_nothing, longs{} + rule.zero_exponent, binade);
        // Where a term is zero, its exponent is that of zero, so that this one takes part.
        const longs largest = v::larger(v::shorts_at(it.largest + j), addend_exponent);
        longs sum = v::with_sign(v::cut_off(significand << 12, largest - addend_exponent), bits >> 63);
        for (int g = 0; g < groups_of_block; ++g) {
            const longs products = v::shorts_at(it.sums[g] + j);
            const longs factor = v::shorts_at(b_significands + g * panel_columns + j) * a_significands[g];
            const longs sign = products >> 63;
            const longs magnitude = v::with_sign(products, sign) * factor << 27;
            sum += v::with_sign(v::cut_off(magnitude, largest - v::shorts_at(it.exponents[g] + j)), sign);
        }
        // 2^52 + |sum|, less 2^52.
        const longs sign = sum >> 63;
        const longs magnitude = v::with_sign(sum, sign);
        const v::doubles value = v::as_doubles(v::as_words(magnitude) | 0x4330'0000'0000'0000U) - 0x1p52;
        const longs number = v::as_longs(v::as_words(value));
        const longs is_zero = v::is_equal(magnitude, longs{});
        const longs exponent = (number >> 52) - (1023 - 127) + largest - rule.fraction_bits;
        const longs in_range = v::is_greater(exponent, longs{}) & v::is_greater(longs{} + 255, exponent);
        const longs result =
            (sign & (std::int64_t{1} << 31)) | (exponent & 0xFF) << 23 | (number >> 29 & 0x7F'FFFF);
        const longs is_special = v::is_equal(field, longs{} + 255);
        const longs again =
            is_special | v::ints_at(irregular + j) | std::int64_t{row_irregular} | (~in_range & ~is_zero);
        v::store(bits_now + j, result & ~is_zero);
        v::store(redo + j, again);
        any |= again;
    }
    std::memcpy(now, bits_now, sizeof bits_now);
    std::int64_t each[v::count];
    std::memcpy(each, &any, sizeof any);
    std::int64_t found = 0;
    for (const std::int64_t one : each) found |= one;
    return found != 0;
}

/// As multiply_panel.
inline void multiply_group_panel(const panel_task<group_panels>& task, std::ptrdiff_t panel,
                                 std::ptrdiff_t rows, std::ptrdiff_t columns, float* sums,
                                 std::ptrdiff_t sums_stride) {
    const group_panels& a = *task.a;
    const group_panels& b = *task.b;
    for (std::ptrdiff_t block = 0; block < task.blocks; ++block) {
        const std::ptrdiff_t b_at = (panel * task.blocks + block) * panel_columns;
        for (std::ptrdiff_t row = 0; row < rows; ++row) {
            const std::ptrdiff_t a_at = row * task.blocks + block;
            group_sums groups;
            const group_operand left(a, a_at);
            const group_operand right(b, b_at);
            add_groups(left, right, static_cast<std::int16_t>(task.rule.zero_exponent), groups);
            float* const before = sums + row * sums_stride;
            float now[panel_columns];
            std::int32_t redo[panel_columns];
            const bool again = multiply_group_block(groups, left.significands, right.significands, task.rule,
                                                    a.irregular[static_cast<std::size_t>(a_at)],
                                                    b.irregular.data() + b_at, before, now, redo);
            if (again) task.compute_again(row, panel, columns, block, redo, before, now);
            std::memcpy(before, now, sizeof now);
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET
