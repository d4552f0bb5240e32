// SPDX-License-Identifier: MIT
/// \file
/// The arithmetic of the tensor cores of each GPU architecture, as data.
///
/// Sources, by the names that the table uses:
/// - MATLAB-tensor-core: F. A. Khattak and M. Mikaitis, "Accurate Models of NVIDIA Tensor Cores",
///   arXiv 2512.07004, and the results of real tensor cores that they publish with it.
/// - MMA-Sim: P. Xie and others, "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores",
///   arXiv 2511.10909. Its newer version has the exponents of zero.
/// - Fasi and others: M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor
///   cores", PeerJ Computer Science 7:e330, 2021 (Volta, Turing, Ampere).
/// They agree on everything below except for one constant; see block_rule::least_addend_exponent.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <cstdint>
#include <type_traits>

namespace mp {

/// A GPU architecture, by NVIDIA's name for its compute capability.
enum class arch : std::uint16_t {
    sm_70 = 70,    ///< Volta: V100
    sm_75 = 75,    ///< Turing: T4
    sm_80 = 80,    ///< Ampere: A100, A30
    sm_86 = 86,    ///< Ampere: A2, A10, A40
    sm_87 = 87,    ///< Ampere: Jetson Orin
    sm_89 = 89,    ///< Ada: L4, L40S
    sm_90 = 90,    ///< Hopper: H100, H200
    sm_100 = 100,  ///< Blackwell: B200
    sm_103 = 103,  ///< Blackwell: B300
    sm_110 = 110,  ///< Blackwell: Jetson Thor
    sm_120 = 120,  ///< Blackwell: RTX 50 and RTX PRO 6000
    sm_121 = 121,  ///< Blackwell: GB10, in DGX Spark
};

/// Formats of operands that tensor cores treat alike, by the names that their instructions have.
enum class operand_kind : unsigned char {
    none,  ///< no format of tensor cores, or none that is modelled
    fp16,  ///< mp::half
    bf16,  ///< mp::bfloat16
    tf32,  ///< mp::tfloat32
    fp8,   ///< mp::float8_e4m3fn and mp::float8_e5m2, each or mixed
    /// Block-scaled: numbers of 8, 6 and 4 bits, each or mixed, with a power of two for every 32 (MXFP8, MXFP6, MXFP4).
    mxf8f6f4,
    /// Block-scaled: mp::float4_e2m1fn with a scale for every 32 or 16, a power of two or E4M3 (MXFP4, NVFP4).
    mxf4nvf4,
};

/// Rounding of the exact sum of a block.
enum class output_rule : unsigned char {
    float_truncated,    ///< to float, toward zero; but overflow gives infinity
    half_nearest_even,  ///< to half, to nearest even
    e8m13_truncated,    ///< to the exponents of float and 13 fraction bits, toward zero; overflow gives
                        ///< infinity
};

/// Evidence for a row of the table.
enum class evidence : unsigned char {
    recorded,   ///< equals every recorded result of this architecture in the data of MATLAB-tensor-core
    published,  ///< read from published models only; no recorded result was compared
    assumed,  ///< that of another architecture of the family, or of other operands of the instruction, for want of any
              ///< model of these
};

/// The unit that multiplies numbers of 8 bits, where an architecture has two. Of no meaning for other
/// operands.
enum class float8_unit : unsigned char {
    /// The unit for 8 bits: mma.sync on sm_89 and sm_120, wgmma on sm_90, tcgen05 on sm_100.
    native,
    /// What mma.sync is made of on sm_90 and sm_100: 32 products are converted to half and added in two
    /// blocks, from zero, first those with k mod 4 in {0, 1}, then, on top of their sum, those with k mod 4
    /// in {2, 3}; the addend is added last, by one ordinary addition rounded to nearest even.
    through_half,
};

/// The constants of a block fused multiply-add: see mp::block_fma.
struct block_rule {
    /// Products that are added at a time; zero where there is no such instruction in the model.
    int products = 0;
    /// Bits that are kept behind the point of the largest term.
    int fraction_bits = 0;
    output_rule output = output_rule::float_truncated;
    /// The exponent that a product or addend of zero has when the largest is looked for.
    int zero_exponent = 0;
    /// No addend has an exponent below this one. For float that is where subnormal numbers begin. For half
    /// the models disagree: in MMA-Sim (which is followed here, because the operands are treated in the same
    /// way) a subnormal addend has the exponent -14; in MATLAB-tensor-core that of its highest bit, down to
    /// -24. It matters only where bits of products below 2^-39 decide a tie; no recorded result tells.
    int least_addend_exponent = 0;
    evidence known = evidence::published;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Value>
inline constexpr operand_kind operand_kind_of =
    std::is_same_v<Value, half>                                                  ? operand_kind::fp16
    : std::is_same_v<Value, bfloat16>                                            ? operand_kind::bf16
    : std::is_same_v<Value, tfloat32>                                            ? operand_kind::tf32
    : std::is_same_v<Value, float8_e4m3fn> || std::is_same_v<Value, float8_e5m2> ? operand_kind::fp8
                                                                                 : operand_kind::none;

/// A row of the table.
struct block_rule_entry {
    arch first;  ///< for this and the following architectures up to `last`
    arch last;
    operand_kind operands;
    bool half_output;
    block_rule rule;
};

inline constexpr int least_float = -126;
inline constexpr int least_half = -14;

// Exponents of zero: MMA-Sim for all; those of sm_80 and sm_90 and of half on sm_70 are MATLAB-tensor-core's,
// too. Each is the exponent of the smallest normal number of the output, less 5, 6 or 7. With float8 and half
// operands and a float output they cannot matter: a block with a term that is not zero has a larger exponent,
// since none of its products is below 2^-48 and none of its addends' exponents below -126. With float8
// operands and a half output neither: no product and no addend has bits below 2^-32, which all rules keep.
//
// sm_80, sm_86, sm_89 and sm_90, sm_100, sm_120 are alike in what is not of 8 bits. Recorded are V100, A100,
// A2 (sm_86), L40S and another Ada, H100, H200 and B200. Of float8, those of sm_89 are recorded; those of
// sm_90's wgmma are recorded for float only, with an addend of zero; sm_100's tcgen05 and all of sm_120 are
// from MMA-Sim, and so is all that is block-scaled; no recorded result of a B200 or an RTX 50 is known for it. Turing has the eight
// products of MMA-Sim.
// clang-format off
inline constexpr block_rule_entry block_rules[] = {
    {arch::sm_70,  arch::sm_70,  operand_kind::fp16, false, { 4, 23, output_rule::float_truncated,   -131, least_float, evidence::recorded}},
    {arch::sm_70,  arch::sm_70,  operand_kind::fp16, true,  { 4, 23, output_rule::half_nearest_even,  -19, least_half,  evidence::recorded}},
    {arch::sm_75,  arch::sm_75,  operand_kind::fp16, false, { 8, 24, output_rule::float_truncated,   -132, least_float, evidence::published}},
    {arch::sm_75,  arch::sm_75,  operand_kind::fp16, true,  { 8, 24, output_rule::half_nearest_even,  -20, least_half,  evidence::published}},

    {arch::sm_80,  arch::sm_89,  operand_kind::fp16, false, { 8, 24, output_rule::float_truncated,   -132, least_float, evidence::recorded}},
    {arch::sm_80,  arch::sm_89,  operand_kind::fp16, true,  { 8, 24, output_rule::half_nearest_even,  -20, least_half,  evidence::recorded}},
    {arch::sm_80,  arch::sm_89,  operand_kind::bf16, false, { 8, 24, output_rule::float_truncated,   -132, least_float, evidence::recorded}},
    {arch::sm_80,  arch::sm_89,  operand_kind::tf32, false, { 4, 24, output_rule::float_truncated,   -132, least_float, evidence::recorded}},
    {arch::sm_89,  arch::sm_89,  operand_kind::fp8,  false, {16, 13, output_rule::e8m13_truncated,   -132, least_float, evidence::recorded}},
    {arch::sm_89,  arch::sm_89,  operand_kind::fp8,  true,  {16, 13, output_rule::half_nearest_even,  -20, least_half,  evidence::recorded}},

    {arch::sm_90,  arch::sm_100, operand_kind::fp16, false, {16, 25, output_rule::float_truncated,   -133, least_float, evidence::recorded}},
    {arch::sm_90,  arch::sm_100, operand_kind::fp16, true,  {16, 25, output_rule::half_nearest_even,  -21, least_half,  evidence::recorded}},
    {arch::sm_90,  arch::sm_100, operand_kind::bf16, false, {16, 25, output_rule::float_truncated,   -133, least_float, evidence::recorded}},
    {arch::sm_90,  arch::sm_100, operand_kind::tf32, false, { 8, 25, output_rule::float_truncated,   -133, least_float, evidence::recorded}},
    {arch::sm_90,  arch::sm_90,  operand_kind::fp8,  false, {32, 13, output_rule::e8m13_truncated,   -133, least_float, evidence::recorded}},
    {arch::sm_90,  arch::sm_90,  operand_kind::fp8,  true,  {32, 13, output_rule::half_nearest_even,  -21, least_half,  evidence::published}},
    {arch::sm_100, arch::sm_120, operand_kind::fp8,  false, {32, 25, output_rule::float_truncated,   -133, least_float, evidence::published}},
    {arch::sm_100, arch::sm_120, operand_kind::mxf8f6f4, false, {32, 25, output_rule::float_truncated, -133, least_float, evidence::published}},
    {arch::sm_100, arch::sm_120, operand_kind::mxf4nvf4, false, {64, 35, output_rule::float_truncated, -139, least_float, evidence::published}},
    {arch::sm_120, arch::sm_120, operand_kind::fp16, false, {16, 25, output_rule::float_truncated,   -133, least_float, evidence::published}},
    {arch::sm_120, arch::sm_120, operand_kind::fp16, true,  {16, 25, output_rule::half_nearest_even,  -21, least_half,  evidence::published}},
    {arch::sm_120, arch::sm_120, operand_kind::bf16, false, {16, 25, output_rule::float_truncated,   -133, least_float, evidence::published}},
    {arch::sm_120, arch::sm_120, operand_kind::tf32, false, { 8, 25, output_rule::float_truncated,   -133, least_float, evidence::published}},
};
// clang-format on

// The loops of emulated products rest on it.
static_assert([] {
    for (const block_rule_entry& entry : block_rules) {
        if (entry.rule.least_addend_exponent <= entry.rule.zero_exponent) return false;
    }
    return true;
}());

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The architecture whose rules are taken for this one: itself, or where nobody has published any, the one of its family that
/// it is a variant of.
[[nodiscard]] constexpr arch modelled_arch(arch architecture) {
    switch (architecture) {
        case arch::sm_87:
            return arch::sm_86;
        case arch::sm_103:
        case arch::sm_110:
            return arch::sm_100;
        case arch::sm_121:
            return arch::sm_120;
        default:
            return architecture;
    }
}

/// The rule by which an architecture multiplies operands of a kind and adds them to accumulators of half or
/// float; its `products` are zero where there is no such instruction, or none that is modelled.
[[nodiscard]] constexpr block_rule block_rule_of(arch architecture, operand_kind operands, bool half_output) {
    const arch modelled = modelled_arch(architecture);
    for (const detail::block_rule_entry& entry : detail::block_rules) {
        if (entry.first <= modelled && modelled <= entry.last && entry.operands == operands &&
            entry.half_output == half_output) {
            block_rule rule = entry.rule;
            if (modelled != architecture) rule.known = evidence::assumed;
            return rule;
        }
    }
    return {};
}

/// Whether 8-bit operands have a second unit: float8_unit::through_half.
[[nodiscard]] constexpr bool has_float8_through_half(arch architecture) {
    return architecture == arch::sm_90 || modelled_arch(architecture) == arch::sm_100;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Checks what types can tell of a product on a tensor core, and gives its rule.
template <arch Arch, class A, class B, class Output>
constexpr block_rule checked_block_rule() {
    using a_value = std::remove_const_t<A>;
    using b_value = std::remove_const_t<B>;
    constexpr operand_kind kind = operand_kind_of<a_value>;
    static_assert(!std::is_same_v<a_value, float> && !std::is_same_v<b_value, float>,
                  "mp: a tensor core reads floats as mp::tfloat32 and ignores their last 13 bits: view or "
                  "convert them as such");
    static_assert(kind != operand_kind::none || std::is_same_v<a_value, float>,
                  "mp: tensor cores are modelled for operands of half, bfloat16, tfloat32, float8_e4m3fn and "
                  "float8_e5m2");
    static_assert(
        operand_kind_of<b_value> == kind,
        "mp: both operands on a tensor core are of one type; only float8_e4m3fn and float8_e5m2 mix");
    static_assert(std::is_same_v<Output, float> || std::is_same_v<Output, half>,
                  "mp: the accumulators of a tensor core are float or half");
    constexpr block_rule rule = block_rule_of(Arch, kind, std::is_same_v<Output, half>);
    static_assert(
        rule.products != 0 || operand_kind_of<b_value> != kind || kind == operand_kind::none ||
            (kind == operand_kind::fp8 && has_float8_through_half(Arch)),
        "mp: the tensor cores of this architecture do not multiply this type into this accumulator, "
        "or no model of it is known");
    return rule;
}

}}  // namespace mp::detail
