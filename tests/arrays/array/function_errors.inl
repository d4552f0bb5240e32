// SPDX-License-Identifier: MIT
// The float kernels of functions.inl as functions that the baseline can call.

namespace mp::detail::MP_TARGET {

/// What the kernel for a format makes of `count` floats, a multiple of 16, and ones where it does not know.
template <class Function, class Format>
void evaluate_array(const float* from, float* values, std::uint32_t* unknown, std::size_t count) {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < count; i += lanes) {
        const evaluated result = evaluate<Format>(Function{}, load(from + i));
        store(values + i, result.value);
        store(unknown + i, result.unknown);
    }
}

}  // namespace mp::detail::MP_TARGET
