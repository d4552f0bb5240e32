// SPDX-License-Identifier: MIT
// Rows of C from and to floats by vectors.

namespace mp::detail::MP_TARGET {

template <class Value>
void write_output(const float* from, void* to, std::ptrdiff_t count) {
    auto* values = static_cast<Value*>(to);
    constexpr auto step = static_cast<std::ptrdiff_t>(lanes);
    for (; count >= step; count -= step, from += step, values += step) store_numbers(values, load(from));
    if (count > 0) {
        const auto rest = static_cast<std::size_t>(count);
        store_first_numbers(values, load_first_numbers(from, rest), rest);
    }
}

template <class Value>
void read_output(const void* from, float* to, std::ptrdiff_t count) {
    const auto* values = static_cast<const Value*>(from);
    constexpr auto step = static_cast<std::ptrdiff_t>(lanes);
    for (; count >= step; count -= step, to += step, values += step) store(to, load_numbers(values));
    if (count > 0) {
        const auto rest = static_cast<std::size_t>(count);
        store_first_numbers(to, load_first_numbers(values, rest), rest);
    }
}

}  // namespace mp::detail::MP_TARGET
