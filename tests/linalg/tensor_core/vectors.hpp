// SPDX-License-Identifier: MIT
#pragma once

#include <mp/tensor_core.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Recorded results of real tensor cores, and the model's for the same operands.
namespace vectors {

/// The results of one instruction of one GPU: n sums of `terms` products and an addend.
struct set {
    std::string gpu;
    std::string operands;
    std::string output;
    std::size_t terms = 0;
    std::vector<std::uint32_t> a;  ///< codes, n x terms
    std::vector<std::uint32_t> b;
    std::vector<std::uint32_t> c;       ///< bits of floats; for half outputs to be rounded to half first
    std::vector<std::uint32_t> result;  ///< bits of floats, of halves, too

    [[nodiscard]] std::string name() const { return gpu + " " + operands + " " + output; }
};

/// The values of codes; those of tfloat32 are the floats that the instruction was given.
template <class Value>
std::vector<Value> values(std::span<const std::uint32_t> codes) {
    std::vector<Value> result;
    for (const std::uint32_t code : codes) {
        if constexpr (std::is_same_v<Value, mp::tfloat32>) {
            result.push_back(std::bit_cast<mp::tfloat32>(code));
        } else {
            result.push_back(Value::from_bits(static_cast<typename Value::storage>(code)));
        }
    }
    return result;
}

template <mp::arch Arch, class Value, class Output>
std::uint32_t model(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, std::uint32_t addend,
                    mp::float8_unit unit) {
    const std::vector<Value> left = values<Value>(a);
    const std::vector<Value> right = values<Value>(b);
    const auto terms = static_cast<std::ptrdiff_t>(a.size());
    const auto c = Output(std::bit_cast<float>(addend));
    Output d{};
    mp::mma<Arch>(mp::row_major(left.data(), 1, terms), mp::row_major(right.data(), terms, 1),
                  mp::row_major(&c, 1, 1), mp::row_major(&d, 1, 1), unit);
    return std::bit_cast<std::uint32_t>(static_cast<float>(d));
}

/// Computes one result: (codes of a, codes of b, bits of the addend, unit).
using model_function = std::uint32_t (*)(std::span<const std::uint32_t>, std::span<const std::uint32_t>,
                                         std::uint32_t, mp::float8_unit);

template <mp::arch Arch>
model_function model_on(std::string_view operands, bool half_output) {
    using mp::half;
    if (operands == "fp16") return half_output ? &model<Arch, half, half> : &model<Arch, half, float>;
    if constexpr (Arch != mp::arch::sm_70) {
        if (operands == "bf16") return &model<Arch, mp::bfloat16, float>;
        if (operands == "tf32") return &model<Arch, mp::tfloat32, float>;
    }
    if constexpr (Arch >= mp::arch::sm_89) {
        if (operands == "E4M3") {
            return half_output ? &model<Arch, mp::float8_e4m3fn, half>
                               : &model<Arch, mp::float8_e4m3fn, float>;
        }
        if (operands == "E5M2") {
            return half_output ? &model<Arch, mp::float8_e5m2, half> : &model<Arch, mp::float8_e5m2, float>;
        }
    }
    return nullptr;
}

/// Whether wgmma multiplied 8-bit numbers; its addends were zero, whatever the file has.
inline bool is_wgmma(const set& it) {
    return (it.gpu == "H100" || it.gpu == "H200") && it.operands[0] == 'E' && it.output == "fp32";
}

inline std::uint32_t addend_of(const set& it, std::size_t index) {
    return is_wgmma(it) ? 0 : it.c[index];
}

/// The model for a set, and the unit that the 8-bit numbers went through.
inline std::pair<model_function, mp::float8_unit> model_for(const set& it) {
    using enum mp::float8_unit;
    const bool half_output = it.output == "fp16";
    if (it.gpu == "V100") return {model_on<mp::arch::sm_70>(it.operands, half_output), native};
    if (it.gpu == "A100") return {model_on<mp::arch::sm_80>(it.operands, half_output), native};
    if (it.gpu == "A2") return {model_on<mp::arch::sm_86>(it.operands, half_output), native};
    if (it.gpu == "Ada" || it.gpu == "L40S")
        return {model_on<mp::arch::sm_89>(it.operands, half_output), native};
    if (it.gpu == "H100" || it.gpu == "H200") {
        return {model_on<mp::arch::sm_90>(it.operands, half_output), is_wgmma(it) ? native : through_half};
    }
    if (it.gpu == "B200") return {model_on<mp::arch::sm_100>(it.operands, half_output), through_half};
    return {nullptr, native};
}

}  // namespace vectors
