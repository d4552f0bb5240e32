// SPDX-License-Identifier: MIT
// The elements at the end of an array that fill no vector.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Calls f(first, n) for each vector that holds some of the first `count` elements: n of them, `lanes` in all but
/// the last.
template <class Function>
MP_ALWAYS_INLINE void for_each_vector_of(std::size_t count, Function f) {
    for (std::size_t first = 0; first < count; first += lanes) {
        f(first, count - first < lanes ? count - first : lanes);
    }
}

/// Room for an operand's last elements, and zeros behind them. They are written by vectors as they will be read, one where
/// there is room for one: a read of what several smaller stores have written waits for all of them.
template <class Operand, std::size_t Room>
struct operand_copy;
template <class Value, std::size_t Room>
struct operand_copy<const Value*, Room> {
    static_assert(Room % lanes == 0);
    alignas(64) Value elements[Room];

    /// `count` < Room.
    MP_ALWAYS_INLINE const Value* fill(const Value* from, std::size_t count) noexcept {
        if constexpr (sizeof elements == vector_bytes && !std::is_same_v<Value, float>) {
            const bytes_of_uint32 codes = load_first_bytes(from, count * sizeof(Value));
            std::memcpy(static_cast<void*>(elements), &codes, sizeof codes);
            return elements;
        }
        std::memset(static_cast<void*>(elements), 0, sizeof elements);
        for_each_vector_of(count, [&](std::size_t first, std::size_t n) {
            if constexpr (std::is_same_v<Value, float>) {
                store(elements + first, n == lanes ? load(from + first) : load_partial(from + first, n));
            } else {
                store(codes_of(elements + first),
                      n == lanes ? load(codes_of(from + first)) : load_partial(codes_of(from + first), n));
            }
        });
        return elements;
    }
};
template <class Value, std::size_t Room>
struct operand_copy<broadcast_value<Value>, Room> {
    MP_ALWAYS_INLINE broadcast_value<Value> fill(broadcast_value<Value> operand, std::size_t) noexcept {
        return operand;
    }
};

/// The first `count` of some results into an array.
template <class Value>
MP_ALWAYS_INLINE void store_first(Value* to, const Value* results, std::size_t count) noexcept {
    for_each_vector_of(count, [&](std::size_t first, std::size_t n) {
        if constexpr (std::is_same_v<Value, float>) {
            if (n == lanes) return store(to + first, load(results + first));
            store_partial(to + first, load(results + first), n);
        } else {
            if (n == lanes) return store(codes_of(to + first), load(codes_of(results + first)));
            store_partial(codes_of(to + first), load(codes_of(results + first)), n);
        }
    });
}

}}}  // namespace mp::detail::MP_TARGET
