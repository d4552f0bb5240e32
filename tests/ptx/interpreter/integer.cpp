// SPDX-License-Identifier: MIT
// Arithmetic of integers.
#include "lane_functions.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptx {

namespace {

template <class T>
using bits_of = std::make_unsigned_t<T>;

struct add {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(static_cast<bits_of<T>>(a) + static_cast<bits_of<T>>(b));
    }
};
struct subtract {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(static_cast<bits_of<T>>(a) - static_cast<bits_of<T>>(b));
    }
};
__extension__ using signed_128 = __int128;
__extension__ using unsigned_128 = unsigned __int128;
template <class T>
using doubled =
    std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, signed_128, unsigned_128>,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
template <class T>
T high(T a, T b) {
    return static_cast<T>((static_cast<doubled<T>>(a) * static_cast<doubled<T>>(b)) >> (8 * sizeof(T)));
}
struct multiply_low {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
};
struct multiply_high {
    template <class T>
    static T apply(T a, T b) {
        return high(a, b);
    }
};
struct multiply_add_low {
    template <class T>
    static T apply(T a, T b, T c) {
        return add::apply(multiply_low::apply(a, b), c);
    }
};
struct multiply_add_high {
    template <class T>
    static T apply(T a, T b, T c) {
        return add::apply(high(a, b), c);
    }
};
/// Division by zero gives all ones; the machine's results of others are the definition.
struct divide {
    template <class T>
    static T apply(T a, T b) {
        if (b == 0) return static_cast<T>(~T{0});
        if constexpr (std::is_signed_v<T>) {
            if (b == -1) return subtract::apply(T{0}, a);
        }
        return static_cast<T>(a / b);
    }
};
struct remainder {
    template <class T>
    static T apply(T a, T b) {
        if (b == 0) return a;
        if constexpr (std::is_signed_v<T>) {
            if (b == -1) return 0;
        }
        return static_cast<T>(a % b);
    }
};
struct minimum {
    template <class T>
    static T apply(T a, T b) {
        return b < a ? b : a;
    }
};
struct maximum {
    template <class T>
    static T apply(T a, T b) {
        return a < b ? b : a;
    }
};
struct negate {
    template <class T>
    static T apply(T a) {
        return subtract::apply(T{0}, a);
    }
};
struct absolute {
    template <class T>
    static T apply(T a) {
        return a < 0 ? subtract::apply(T{0}, a) : a;
    }
};
struct bit_not {
    template <class T>
    static T apply(T a) {
        return static_cast<T>(~a);
    }
};
struct bit_and {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(a & b);
    }
};
struct bit_or {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(a | b);
    }
};
struct bit_xor {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(a ^ b);
    }
};
struct is_zero_word {
    template <class T>
    static T apply(T a) {
        return a == 0 ? T{1} : T{0};
    }
};
struct reverse_bits {
    template <class T>
    static T apply(T a) {
        T result = 0;
        for (unsigned i = 0; i < 8 * sizeof(T); ++i)
            result = static_cast<T>(result | (a >> i & 1U) << (8 * sizeof(T) - 1 - i));
        return result;
    }
};
/// Amounts beyond the width shift everything out.
struct shift_left {
    template <class T>
    static T apply(T a, std::uint32_t by) {
        return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(bits_of<T>(a) << by);
    }
};
struct shift_right {
    template <class T>
    static T apply(T a, std::uint32_t by) {
        if (by >= 8 * sizeof(T)) return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
        return static_cast<T>(a >> by);
    }
};

template <class Op>
void decode_unary(decoder& d, instruction& to) {
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    to.o[0] = d.value(0, bytes);
    to.o[1] = d.value(1, bytes);
    to.run = for_integer(type, []<class T> { return &map_one<Op, T>; });
}
template <class Op>
void decode_binary(decoder& d, instruction& to) {
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    to.o[0] = d.value(0, bytes);
    to.o[1] = d.value(1, bytes);
    to.o[2] = d.value(2, bytes);
    to.run = for_integer(type, []<class T> { return &map_two<Op, T>; });
}

template <class Op, class T>
void shift(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<lane_word<T>>(w, i.o[0]);
    const auto* const a = words<lane_word<T>>(w, i.o[1]);
    const auto* const by = words<std::uint32_t>(w, i.o[2]);
    for_lanes(m, [=](int lane) { to[lane] = as_word(Op::apply(static_cast<T>(a[lane]), by[lane])); });
}
template <class Op>
void decode_shift(decoder& d, instruction& to) {
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    to.o[0] = d.value(0, bytes);
    to.o[1] = d.value(1, bytes);
    to.o[2] = d.value(2, 4);
    to.run = for_integer(type, []<class T> { return &shift<Op, T>; });
}

/// Products of twice the width.
template <class T>
void multiply_wide(warp& w, const instruction& i, lane_mask m) {
    using wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const auto* const a = words<lane_word<T>>(w, i.o[1]);
    const auto* const b = words<lane_word<T>>(w, i.o[2]);
    const bool adds = i.o[3].is_used();
    for_lanes(m, [&](int lane) {
        const auto product =
            static_cast<std::uint64_t>(wide{static_cast<T>(a[lane])} * wide{static_cast<T>(b[lane])});
        write_lane(w, i.o[0], lane, product + (adds ? read_lane(w, i.o[3], lane) : 0));
    });
}
void decode_product(decoder& d, instruction& to, bool adds) {
    const std::string_view part = d.one_of({"lo", "hi", "wide"});
    if (part.empty()) d.fail("which part of the product is missing");
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    const std::size_t result = part == "wide" ? 2 * bytes : bytes;
    to.o[0] = d.value(0, result);
    to.o[1] = d.value(1, bytes);
    to.o[2] = d.value(2, bytes);
    if (adds) to.o[3] = d.value(3, result);
    if (part == "wide") {
        if (type == "u16") to.run = &multiply_wide<std::uint16_t>;
        if (type == "s16") to.run = &multiply_wide<std::int16_t>;
        if (type == "u32") to.run = &multiply_wide<std::uint32_t>;
        if (type == "s32") to.run = &multiply_wide<std::int32_t>;
    } else if (adds) {
        to.run = part == "lo" ? for_integer(type, []<class T> { return &map_three<multiply_add_low, T>; })
                              : for_integer(type, []<class T> { return &map_three<multiply_add_high, T>; });
    } else {
        to.run = part == "lo" ? for_integer(type, []<class T> { return &map_two<multiply_low, T>; })
                              : for_integer(type, []<class T> { return &map_two<multiply_high, T>; });
    }
}

}  // namespace

void add_integer_instructions(instruction_table& table) {
    table["add"] = &decode_binary<add>;
    table["sub"] = &decode_binary<subtract>;
    table["div"] = &decode_binary<divide>;
    table["rem"] = &decode_binary<remainder>;
    table["min"] = &decode_binary<minimum>;
    table["max"] = &decode_binary<maximum>;
    table["neg"] = &decode_unary<negate>;
    table["abs"] = &decode_unary<absolute>;
    table["cnot"] = &decode_unary<is_zero_word>;
    table["brev"] = &decode_unary<reverse_bits>;
    table["not"] = &decode_unary<bit_not>;
    table["and"] = &decode_binary<bit_and>;
    table["or"] = &decode_binary<bit_or>;
    table["xor"] = &decode_binary<bit_xor>;
    table["shl"] = &decode_shift<shift_left>;
    table["shr"] = &decode_shift<shift_right>;
    table["mul"] = [](decoder& d, instruction& to) { decode_product(d, to, false); };
    table["mad"] = [](decoder& d, instruction& to) { decode_product(d, to, true); };
}

}  // namespace ptx
