// SPDX-License-Identifier: MIT
// Taking the scale out of gradients and looking for infinities and NaNs, a vector at a time.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Where the results of unscaling go: to other memory or back, to memory past the caches, or nowhere.
enum class unscale_target { memory, non_temporal, nowhere };

/// One vector; says by a sign bit in `carries` whether there is something bad. See carry_of.
template <bool Multiply, unscale_target Target, class Gradient>
MP_ALWAYS_INLINE void unscale_vector(const Gradient* gradient, [[maybe_unused]] float* unscaled,
                                     vec<float> inverse, vec<std::uint32_t> carry,
                                     vec<std::uint32_t>& carries) {
    vec<float> value = load_numbers(gradient);
    if constexpr (Multiply) value *= inverse;
    if constexpr (Target == unscale_target::memory) store(unscaled, value);
    if constexpr (Target == unscale_target::non_temporal) store_nontemporal(unscaled, value);
    carries |= (as_uint32(value) & 0x7fff'ffffU) + carry;
}

template <bool Multiply, unscale_target Target, class Gradient>
bool unscale_block_of_vectors(const Gradient* gradient, [[maybe_unused]] float* unscaled, std::size_t count,
                              float inverse, std::uint32_t limit) {
    const vec<float> factor = broadcast(inverse);
    const vec<std::uint32_t> carry = vec<std::uint32_t>{} + carry_above(limit);
    vec<std::uint32_t> carries[4] = {};
    std::size_t i = 0;
    const auto to = [unscaled](std::size_t at) {
        return Target == unscale_target::nowhere ? nullptr : unscaled + at;
    };
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
        unscale_vector<Multiply, Target>(gradient + i, to(i), factor, carry, carries[0]);
        unscale_vector<Multiply, Target>(gradient + i + lanes, to(i + lanes), factor, carry, carries[1]);
        unscale_vector<Multiply, Target>(gradient + i + 2 * lanes, to(i + 2 * lanes), factor, carry,
                                         carries[2]);
        unscale_vector<Multiply, Target>(gradient + i + 3 * lanes, to(i + 3 * lanes), factor, carry,
                                         carries[3]);
    }
    for (; i + lanes <= count; i += lanes) {
        unscale_vector<Multiply, Target>(gradient + i, to(i), factor, carry, carries[0]);
    }
    if (i < count) {
        vec<float> value = load_first_numbers(gradient + i, count - i);
        if constexpr (Multiply) value *= factor;
        if constexpr (Target != unscale_target::nowhere) store_first_numbers(unscaled + i, value, count - i);
        // Zeros times an infinite factor are bad; they are not elements.
        alignas(64) float values[lanes];
        store(values, value);
        for (std::size_t j = 0; j < count - i; ++j) carries[0][0] |= carry_of(values[j], carry_above(limit));
    }
    return movemask(carries[0] | carries[1] | carries[2] | carries[3]) != 0;
}

template <bool Multiply, unscale_target Target, class Gradient>
MP_ALWAYS_INLINE void unscale_blocks(const Gradient* gradient, float* unscaled, std::size_t begin,
                                     std::size_t end, float inverse, std::uint32_t limit,
                                     non_finite_report& report) {
    for (std::size_t at = begin; at < end; at += unscale_block) {
        const std::size_t length = end - at < unscale_block ? end - at : unscale_block;
        if (unscale_block_of_vectors<Multiply, Target>(gradient + at, unscaled + at, length, inverse,
                                                       limit)) {
            count_non_finite(unscaled + at, length, at, report, limit);
        }
    }
}

/// unscaled = gradient * inverse, and what is bad among the results; the arrays may be the same.
template <bool Multiply, class Gradient>
non_finite_report unscale_array(const void* from, float* unscaled, std::size_t count, float inverse,
                                std::uint32_t limit) {
    const default_floating_point_modes modes;
    const auto* const gradient = static_cast<const Gradient*>(from);
    non_finite_report report;
    unscale_blocks<Multiply, unscale_target::memory>(gradient, unscaled, 0, count, inverse, limit, report);
    return report;
}

/// As unscale_array(), for arrays that are far larger than the caches, and not the same.
template <bool Multiply, class Gradient>
non_finite_report unscale_large_array(const void* from, float* unscaled, std::size_t count, float inverse,
                                      std::uint32_t limit) {
    const default_floating_point_modes modes;
    const auto* const gradient = static_cast<const Gradient*>(from);
    non_finite_report report;
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(unscaled);
    const std::size_t past = address % vector_bytes / sizeof(float);
    std::size_t head = past == 0 ? 0 : lanes - past;
    // No element is at a vector's address where none is aligned for its type.
    if (head > count || address % sizeof(float) != 0) head = count;
    unscale_blocks<Multiply, unscale_target::memory>(gradient, unscaled, 0, head, inverse, limit, report);
    unscale_blocks<Multiply, unscale_target::non_temporal>(gradient, unscaled, head, count, inverse, limit,
                                                           report);
    finish_streaming();
    return report;
}

/// As unscale_array(), without writing.
template <bool Multiply, class Gradient>
non_finite_report check_array(const void* from, std::size_t count, float inverse, std::uint32_t limit) {
    const default_floating_point_modes modes;
    const auto* const gradient = static_cast<const Gradient*>(from);
    const check_limits limits = limits_of_check<Multiply, Gradient>(limit, inverse);
    non_finite_report report;
    for (std::size_t at = 0; at < count; at += unscale_block) {
        const std::size_t length = count - at < unscale_block ? count - at : unscale_block;
        bool bad = false;
        if constexpr (!Multiply && codes_tell_finite<Gradient>) {
            bad = check_codes(gradient + at, length, limits.code);
        } else {
            bad = unscale_block_of_vectors<Multiply, unscale_target::nowhere, Gradient>(
                gradient + at, nullptr, length, inverse, limits.value);
        }
        if (bad) {
            float values[unscale_block];
            unscale_block_of_vectors<Multiply, unscale_target::memory>(gradient + at, values, length, inverse,
                                                                       limits.value);
            count_non_finite(values, length, at, report, limits.value);
        }
    }
    return report;
}

}}}  // namespace mp::detail::MP_TARGET
