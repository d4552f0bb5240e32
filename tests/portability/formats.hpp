// SPDX-License-Identifier: MIT
// The formats whose checksums are taken, and codes of them.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/executor.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/named_formats.hpp>
#include <mp/p3109.hpp>
#include <mp/tfloat32.hpp>

#include "checksums.hpp"

#include <concepts>
#include <type_traits>

namespace portability {

/// Kernels of all instruction sets give the same bits; other platforms have only these.
inline constexpr mp::cpu portable_cpu{1, mp::instruction_set::portable};

template <class T>
struct named {
    using type = T;
    const char* name;
};

/// The number types of formats, without float and double.
template <class Function, class... Formats>
void for_each_in(mp::formats::list<Formats...>, Function f) {
    const auto call = [&]<class Format>(std::type_identity<Format>) {
        if constexpr (!std::same_as<Format, mp::formats::binary32> &&
                      !std::same_as<Format, mp::formats::binary64>) {
            f(named<mp::basic_float<Format>>{Format::name});
        }
    };
    (call(std::type_identity<Formats>{}), ...);
}

/// Calls f with every format of the library and two of P3109; with MP_FEW_CHECKSUMS, which takes a third of
/// the time to compile, with one of each kind.
template <class Function>
void for_each_format(Function f) {
#if defined(MP_FEW_CHECKSUMS)
    for_each_in(mp::formats::list<mp::formats::binary16, mp::formats::bfloat16, mp::formats::float8_e4m3fn,
                                  mp::formats::float8_e8m0fnu, mp::formats::float4_e2m1fn>{},
                f);
#else
    for_each_in(mp::formats::all{}, f);
    f(named<mp::p3109<8, 4>>{"p3109_8_4"});
    f(named<mp::p3109<16, 11>>{"p3109_16_11"});
#endif
}

/// All codes of a format of few bits, `count` of a wider one, the edges first.
template <class T>
std::vector<T> codes(std::size_t count) {
    using layout = mp::layout_of<typename T::format>;
    using storage = typename layout::storage;
    std::vector<T> result;
    if constexpr (layout::width <= 8) {
        for (unsigned code = 0; code <= layout::code_mask && result.size() < 256; ++code) {
            result.push_back(T::from_bits(static_cast<storage>(code)));
        }
        if (count < result.size()) {
            std::vector<T> some;
            for (std::size_t i = 0; i < count; ++i) some.push_back(result[i * result.size() / count]);
            return some;
        }
    } else {
        const std::uint64_t edges[] = {0,
                                       1,
                                       layout::min_normal_code - 1U,
                                       layout::min_normal_code,
                                       layout::max_finite_code,
                                       layout::max_finite_code + 1U,
                                       layout::code_mask};
        for (const std::uint64_t code : edges) {
            result.push_back(T::from_bits(static_cast<storage>(code & layout::code_mask)));
            result.push_back(
                T::from_bits(static_cast<storage>((code ^ layout::sign_mask) & layout::code_mask)));
        }
        generator random(layout::code_mask);
        while (result.size() < count) {
            result.push_back(T::from_bits(static_cast<storage>(random.next() & layout::code_mask)));
        }
    }
    return result;
}

}  // namespace portability
