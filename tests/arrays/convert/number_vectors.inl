// SPDX-License-Identifier: MIT
// What number_vectors.cpp tests, as functions that the baseline can call.

namespace mp::detail::MP_TARGET {

template <class Value>
void read_numbers(const Value* from, float* to, std::size_t count) {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < count; i += lanes) {
        if (i + lanes <= count) {
            store(to + i, load_numbers(from + i));
        } else {
            store_first_numbers(to + i, load_first_numbers(from + i, count - i), count - i);
        }
    }
}

template <class Value>
void write_numbers(const float* from, Value* to, std::size_t count) {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < count; i += lanes) {
        if (i + lanes <= count) {
            store_numbers(to + i, load(from + i));
        } else {
            store_first_numbers(to + i, load_first_numbers(from + i, count - i), count - i);
        }
    }
}

}  // namespace mp::detail::MP_TARGET
