// SPDX-License-Identifier: MIT
// Arithmetic of half by AVX512_FP16, 32 lanes an instruction. Each rounds once; the rounding written into the
// instruction holds whatever the caller has set, and binary16 instructions neither flush subnormal numbers
// nor take them for zero (Intel's AVX512-FP16 Architecture Specification, 3.1). So there are no modes to set.
//
// Quotients and roots of 32 halves take longer than twice those of 16 floats, so they stay with
// arithmetic.inl.
//
// Written out, since g++ and clang disagree about the names of the functions, and the type _Float16 would
// bring contraction with it.

#if MP_TARGET_NUMBER == MP_TARGET_AVX512_FP16

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

// NOLINTNEXTLINE(modernize-use-using): attributes of an alias would be those of the element
typedef std::uint16_t halves __attribute__((vector_size(64)));
inline constexpr std::size_t half_lanes = 32;

MP_ALWAYS_INLINE halves apply_binary16(addition, halves a, halves b) {
    __asm__("vaddph %{rn-sae%}, %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE halves apply_binary16(subtraction, halves a, halves b) {
    __asm__("vsubph %{rn-sae%}, %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE halves apply_binary16(multiplication, halves a, halves b) {
    __asm__("vmulph %{rn-sae%}, %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE halves apply_binary16(multiply_addition, halves a, halves b, halves c) {
    __asm__("vfmadd231ph %{rn-sae%}, %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
template <class Value>
MP_ALWAYS_INLINE halves load_binary16(const Value* from) {
    halves x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
template <class Value>
MP_ALWAYS_INLINE halves load_binary16(broadcast_value<Value> operand) {
    return halves{} + operand.value.bits();
}

template <class Operation, class Value, class... Operand>
MP_ALWAYS_INLINE void map_binary16_vector(Value* out, Operand... operands) {
    const halves result = apply_binary16(Operation{}, load_binary16(operands)...);
    std::memcpy(static_cast<void*>(out), &result, sizeof result);
}

template <class Operation, class Value, class... Operand>
void map_binary16(Value* out, std::size_t count, Operand... operands) noexcept {
    const any_floating_point_modes modes;
    std::size_t i = 0;
    for (; i + 4 * half_lanes <= count; i += 4 * half_lanes) {
        map_binary16_vector<Operation>(out + i, operand_from(operands, i)...);
        map_binary16_vector<Operation>(out + i + half_lanes, operand_from(operands, i + half_lanes)...);
        map_binary16_vector<Operation>(out + i + 2 * half_lanes,
                                       operand_from(operands, i + 2 * half_lanes)...);
        map_binary16_vector<Operation>(out + i + 3 * half_lanes,
                                       operand_from(operands, i + 3 * half_lanes)...);
    }
    for (; i < count; i += half_lanes) {
        const std::size_t rest = count - i;
        if (rest >= half_lanes) {
            map_binary16_vector<Operation>(out + i, operand_from(operands, i)...);
        } else {
            alignas(64) Value last[half_lanes];
            map_binary16_vector<Operation>(
                last, avx512::operand_copy<Operand, half_lanes>{}.fill(operand_from(operands, i), rest)...);
            avx512::store_first(out + i, last, rest);
        }
    }
}

}}}  // namespace mp::detail::MP_TARGET

#else

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Not defined: clang complains where it is given a target for no function.
void binary16_needs_avx512_fp16() noexcept;

}}}  // namespace mp::detail::MP_TARGET

#endif
