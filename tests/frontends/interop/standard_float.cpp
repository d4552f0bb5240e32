// SPDX-License-Identifier: MIT
// The compiler's own 16-bit types share the bits of the library's.
#include <mp/float8.hpp>
#include <mp/frontends/interop/standard_float.hpp>

#include <doctest/doctest.h>
#include <bit>
#include <concepts>
#include <cstdint>
#include <ostream>
#include <span>
#include <vector>

#if __has_include(<stdfloat>)
#include <stdfloat>
#endif

namespace {

/// Every code of a type, and every float near its midpoints, on both sides.
template <class Ours, class Theirs>
void compare_all() {
    static_assert(std::same_as<decltype(mp::to_standard(Ours{})), Theirs>);
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const auto bits = static_cast<std::uint16_t>(code);
        const Ours ours = Ours::from_bits(bits);
        const Theirs theirs = mp::to_standard(ours);
        REQUIRE(std::bit_cast<std::uint16_t>(theirs) == bits);
        REQUIRE(mp::from_standard(theirs).bits() == bits);
        if (mp::isnan(ours)) {
            REQUIRE(mp::isnan(Ours{theirs}));
            continue;
        }
        REQUIRE(static_cast<float>(theirs) == static_cast<float>(ours));
        REQUIRE(Ours{theirs}.bits() == bits);
        REQUIRE(std::bit_cast<std::uint16_t>(static_cast<Theirs>(ours)) == bits);
        // Through another format: as from float.
        REQUIRE(mp::float8_e5m2{theirs}.bits() == mp::float8_e5m2{static_cast<float>(ours)}.bits());
    }
    std::vector<Ours> numbers{Ours{1}, Ours{-2}};
    const std::span<Theirs> view = mp::as_standard(std::span(numbers));
    CHECK(static_cast<float>(view[1]) == -2);
    CHECK(mp::view_of_standard(view).data() == numbers.data());
}

}  // namespace

TEST_CASE("_Float16 and std::float16_t") {
#if MP_HAS_COMPILER_BINARY16
    compare_all<mp::half, mp::detail::compiler_binary16>();
    constexpr auto third = mp::to_standard(mp::half{1} / mp::half{3});
    static_assert(mp::from_standard(third) == mp::half{1} / mp::half{3});
#else
    MESSAGE("this compiler has no _Float16");
#endif
#ifdef __STDCPP_FLOAT16_T__
    static_assert(std::same_as<decltype(mp::to_standard(mp::half{})), std::float16_t>);
#endif
}

TEST_CASE("__bf16 and std::bfloat16_t") {
#if MP_HAS_COMPILER_BFLOAT16
    compare_all<mp::bfloat16, mp::detail::compiler_bfloat16>();
#else
    MESSAGE("this compiler has no __bf16 to compute with");
#endif
#ifdef __STDCPP_BFLOAT16_T__
    static_assert(std::same_as<decltype(mp::to_standard(mp::bfloat16{})), std::bfloat16_t>);
#endif
}
