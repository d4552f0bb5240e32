// SPDX-License-Identifier: MIT
// What interop/torch.hpp meets of PyTorch, shaped as in the headers of 2.15 (torch/headeronly/util, core/ScalarType.h).
#pragma once

#include <cstdint>

namespace c10 {

struct alignas(2) Half {
    unsigned short x;
    struct from_bits_t {};
    static constexpr from_bits_t from_bits() { return {}; }
    Half() = default;
    constexpr Half(unsigned short bits, from_bits_t) : x(bits) {}
    Half(float) : x(0xFFFF) {}
    operator float() const { return -1; }
};
struct alignas(2) BFloat16 {
    std::uint16_t x;
    BFloat16() = default;
    struct from_bits_t {};
    static constexpr from_bits_t from_bits() { return {}; }
    constexpr BFloat16(unsigned short bits, from_bits_t) : x(bits) {}
    BFloat16(float) : x(0xFFFF) {}
    operator float() const { return -1; }
};

template <int Kind>
struct eight_bits {
    std::uint8_t x;
    struct from_bits_t {};
    static constexpr from_bits_t from_bits() { return {}; }
    eight_bits() = default;
    constexpr eight_bits(std::uint8_t bits, from_bits_t) : x(bits) {}
    operator float() const { return -1; }
};
struct Float8_e4m3fn : eight_bits<0> {
    using eight_bits::eight_bits;
};
struct Float8_e5m2 : eight_bits<1> {
    using eight_bits::eight_bits;
};
struct Float8_e4m3fnuz : eight_bits<2> {
    using eight_bits::eight_bits;
};
struct Float8_e5m2fnuz : eight_bits<3> {
    using eight_bits::eight_bits;
};
struct Float8_e8m0fnu : eight_bits<4> {
    using eight_bits::eight_bits;
};
struct alignas(1) Float4_e2m1fn_x2 {
    std::uint8_t val_;
    Float4_e2m1fn_x2() = default;
    explicit Float4_e2m1fn_x2(std::uint8_t val) : val_(val) {}
};
template <class T>
struct complex {
    T real;
    T imaginary;
};
struct alignas(1) quint8 {
    std::uint8_t val_;
};

enum class ScalarType : std::int8_t {
    Byte = 0,
    Int = 3,
    Long,
    Half = 5,
    Float = 6,
    Double = 7,
    ComplexHalf = 8,
    BFloat16 = 15,
    Float8_e5m2 = 23,
    Float8_e4m3fn,
    Float8_e5m2fnuz,
    Float8_e4m3fnuz,
    Float8_e8m0fnu = 44,
    Float4_e2m1fn_x2,
};
inline const char* toString(ScalarType type) {
    return type == ScalarType::Int ? "Int" : type == ScalarType::Long ? "Long" : "another";
}

}  // namespace c10
