// SPDX-License-Identifier: MIT
// The magnitudes of an array over vec<T>: see quantised_operand.hpp, which includes this for every target.

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

inline largest_magnitudes find_magnitudes(const float* values, std::size_t count) {
    // The least complements, for which there is an instruction.
    vec<std::uint32_t> least_finite = broadcast(~std::uint32_t{0});
    vec<std::uint32_t> least = least_finite;
    for_each_vector(count, [&](std::size_t, std::size_t i, std::size_t n) {
        const vec<std::uint32_t> magnitude = as_uint32(load_up_to(values + i, n)) & 0x7fffffffU;
        least = (min)(least, ~magnitude);
        least_finite =
            (min)(least_finite,
                  ~as_uint32(select(magnitude < 0x7f800000U, as_float(magnitude), broadcast(0.0F))));
    });
    std::uint32_t all[lanes];
    std::uint32_t finite[lanes];
    static_assert(sizeof all == sizeof least);
    std::memcpy(all, &least, sizeof all);
    std::memcpy(finite, &least_finite, sizeof finite);
    largest_magnitudes result{};
    for (std::size_t i = 0; i < lanes; ++i) {
        if (~all[i] > result.all) result.all = ~all[i];
        if (~finite[i] > result.finite) result.finite = ~finite[i];
    }
    return result;
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
