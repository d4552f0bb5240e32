// SPDX-License-Identifier: MIT
/// \file
/// Which specializations of the operations of IEEE P3109 there are: the query that section 4.6 recommends,
/// and the list that a declaration of conformance is made of.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::p3109_operations {

/// The groups of annex G. Elementwise operations of numbers are also those of scaled numbers and of blocks.
enum class operation_group : unsigned char { core, basic, full, meta, block_core, reductions };

/// An operation of the report.
struct standard_operation {
    std::string_view name;        ///< by the report
    std::string_view parameters;  ///< f for a format, P for a projection specification, B for a block's size
    operation_group group;
    bool is_algebraic;    ///< exact before its one rounding, whatever the formats
    bool is_elementwise;  ///< there are the same with Scaled and Block before their names
};

/// Every operation of the report once.
inline constexpr standard_operation standard_operations[] = {
    // Of numbers, of numbers with scale factors, and of blocks: the report's groups A, B, C and KA, KB, KC.
    {"Convert", "ffP", operation_group::core, true, true},
    {"Abs", "ffP", operation_group::core, true, true},
    {"Negate", "ffP", operation_group::core, true, true},
    {"Add", "fffP", operation_group::core, true, true},
    {"Subtract", "fffP", operation_group::core, true, true},
    {"Multiply", "fffP", operation_group::core, true, true},
    {"Minimum", "fffP", operation_group::core, true, true},
    {"Maximum", "fffP", operation_group::core, true, true},
    {"MinimumNumber", "fffP", operation_group::core, true, true},
    {"MaximumNumber", "fffP", operation_group::core, true, true},
    {"MinimumMagnitude", "fffP", operation_group::core, true, true},
    {"MaximumMagnitude", "fffP", operation_group::core, true, true},
    {"MinimumMagnitudeNumber", "fffP", operation_group::core, true, true},
    {"MaximumMagnitudeNumber", "fffP", operation_group::core, true, true},
    {"MinimumFinite", "fffP", operation_group::core, true, true},
    {"MaximumFinite", "fffP", operation_group::core, true, true},
    {"FMA", "ffffP", operation_group::core, true, true},
    {"FAA", "ffffP", operation_group::core, true, true},
    {"Clamp", "ffffP", operation_group::core, true, true},
    {"Sqrt", "ffP", operation_group::basic, true, true},
    {"Recip", "ffP", operation_group::basic, true, true},
    {"RSqrt", "ffP", operation_group::basic, true, true},
    {"Exp", "ffP", operation_group::basic, false, true},
    {"Exp2", "ffP", operation_group::basic, false, true},
    {"ExpMinusOne", "ffP", operation_group::basic, false, true},
    {"Log", "ffP", operation_group::basic, false, true},
    {"Log2", "ffP", operation_group::basic, false, true},
    {"LogOnePlus", "ffP", operation_group::basic, false, true},
    {"Softplus", "ffP", operation_group::basic, false, true},
    {"CopySign", "fffP", operation_group::basic, true, true},
    {"Divide", "fffP", operation_group::basic, true, true},
    {"Sin", "ffP", operation_group::full, false, true},
    {"Cos", "ffP", operation_group::full, false, true},
    {"Tan", "ffP", operation_group::full, false, true},
    {"SinPi", "ffP", operation_group::full, false, true},
    {"CosPi", "ffP", operation_group::full, false, true},
    {"TanPi", "ffP", operation_group::full, false, true},
    {"ArcSin", "ffP", operation_group::full, false, true},
    {"ArcCos", "ffP", operation_group::full, false, true},
    {"ArcTan", "ffP", operation_group::full, false, true},
    {"ArcSinPi", "ffP", operation_group::full, false, true},
    {"ArcCosPi", "ffP", operation_group::full, false, true},
    {"ArcTanPi", "ffP", operation_group::full, false, true},
    {"Sinh", "ffP", operation_group::full, false, true},
    {"Cosh", "ffP", operation_group::full, false, true},
    {"Tanh", "ffP", operation_group::full, false, true},
    {"ArcSinh", "ffP", operation_group::full, false, true},
    {"ArcCosh", "ffP", operation_group::full, false, true},
    {"ArcTanh", "ffP", operation_group::full, false, true},
    {"Hypot", "fffP", operation_group::full, true, true},
    {"ArcTan2", "fffP", operation_group::full, false, true},
    {"ArcTan2Pi", "fffP", operation_group::full, false, true},
    // Others.
    {"CompareLess", "ff", operation_group::core, true, false},
    {"CompareLessEqual", "ff", operation_group::core, true, false},
    {"CompareEqual", "ff", operation_group::core, true, false},
    {"CompareGreater", "ff", operation_group::core, true, false},
    {"CompareGreaterEqual", "ff", operation_group::core, true, false},
    {"IsZero", "f", operation_group::core, true, false},
    {"IsOne", "f", operation_group::core, true, false},
    {"IsNaN", "f", operation_group::core, true, false},
    {"IsInfinite", "f", operation_group::core, true, false},
    {"IsFinite", "f", operation_group::core, true, false},
    {"IsSignMinus", "f", operation_group::core, true, false},
    {"IsNormal", "f", operation_group::core, true, false},
    {"IsSubnormal", "f", operation_group::core, true, false},
    {"BitwidthOf", "f", operation_group::meta, true, false},
    {"PrecisionOf", "f", operation_group::meta, true, false},
    {"SignednessOf", "f", operation_group::meta, true, false},
    {"DomainOf", "f", operation_group::meta, true, false},
    {"ExponentBitwidthOf", "f", operation_group::meta, true, false},
    {"TrailingSignificandBitwidthOf", "f", operation_group::meta, true, false},
    {"ExponentBiasOf", "f", operation_group::meta, true, false},
    {"MaxFiniteOf", "f", operation_group::meta, true, false},
    {"MinFiniteOf", "f", operation_group::meta, true, false},
    {"MinPositiveOf", "f", operation_group::meta, true, false},
    {"MaxSubnormalOf", "f", operation_group::meta, true, false},
    {"MinNormalOf", "f", operation_group::meta, true, false},
    {"NextGreaterThan", "f", operation_group::basic, true, false},
    {"NextLessThan", "f", operation_group::basic, true, false},
    {"TotalOrder", "ff", operation_group::basic, true, false},
    {"Class", "f", operation_group::basic, true, false},
    {"ConvertFromBlock", "BfffP", operation_group::block_core, true, false},
    {"ConvertToBlock", "BfffP", operation_group::block_core, true, false},
    {"ConvertToBlockMaxAbsFinite", "BfffPP", operation_group::block_core, true, false},
    {"BlockReduceAdd", "BfffP", operation_group::reductions, true, false},
    {"BlockReduceMultiply", "BfffP", operation_group::reductions, true, false},
    {"BlockDotProduct", "BfffffP", operation_group::reductions, true, false},
};

}  // namespace mp::p3109_operations

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Splits what is between angle brackets at commas, round ones being ignored.
class specialization_reader {
public:
    explicit constexpr specialization_reader(std::string_view text) : text_(text) {}

    /// The next parameter, without spaces; empty behind the last.
    constexpr std::string_view next() {
        const auto is_between = [](char c) { return c == ' ' || c == '(' || c == ')'; };
        while (!text_.empty() && is_between(text_.front())) text_.remove_prefix(1);
        const std::string_view found = text_.substr(0, text_.find(','));
        text_.remove_prefix(found.size() < text_.size() ? found.size() + 1 : found.size());
        std::string_view result = found;
        while (!result.empty() && is_between(result.back())) result.remove_suffix(1);
        return result;
    }
    [[nodiscard]] constexpr bool at_end() const { return text_.find_first_not_of(" )") == text_.npos; }

private:
    std::string_view text_;
};

/// Takes a number without leading zeros from the front of a text; -1 if there is none.
constexpr int take_number(std::string_view& text) {
    int result = -1;
    while (!text.empty() && text.front() >= '0' && text.front() <= '9' && result != 0 && result < 100000) {
        result = (result < 0 ? 0 : result * 10) + (text.front() - '0');
        text.remove_prefix(1);
    }
    return result;
}
constexpr bool take(std::string_view& text, std::string_view prefix) {
    if (text.substr(0, prefix.size()) != prefix) return false;
    text.remove_prefix(prefix.size());
    return true;
}

/// Bits of a format by its name, as far as the library has it as an operand and a result; else 0. Those of 15
/// exponent bits and more are left out where there are scale factors.
constexpr int p3109_bits_of(std::string_view format, bool has_scales) {
    if (format == "binary32") return 32;
    if (format == "binary16" || format == "BFloat16") return 16;
    if (!take(format, "Binary")) return 0;
    const int bits = take_number(format);
    if (!take(format, "p")) return 0;
    const int precision = take_number(format);
    const bool is_signed = take(format, "s");
    if (!is_signed && !take(format, "u")) return 0;
    if (format != "e" && format != "f") return 0;
    const int exponent_bits = bits - precision + (is_signed ? 0 : 1);
    const bool valid = bits >= 2 && bits <= 16 && precision >= 1 && exponent_bits >= 1 &&
                       (!has_scales || exponent_bits < 15);
    return valid ? bits : 0;
}

constexpr bool is_p3109_rounding(std::string_view mode) {
    for (const std::string_view name : {"NearestTiesToEven", "NearestTiesToAway", "TowardPositive",
                                        "TowardNegative", "TowardZero", "ToOdd"}) {
        if (mode == name) return true;
    }
    if (!take(mode, "Stochastic") || !(take(mode, "A") || take(mode, "B") || take(mode, "C"))) return false;
    const int bits = take_number(mode);
    return bits >= 1 && bits <= 32 && mode.empty();
}
constexpr bool is_p3109_saturation(std::string_view mode) {
    return mode == "SatNone" || mode == "SatFinite" || mode == "SatPropagate";
}

/// Whether the parameters are formats, projections and block sizes where they should be. Functions that are
/// not algebraic are known to be correctly rounded up to 16 bits.
constexpr bool has_parameters(std::string_view text, std::string_view expected, bool is_algebraic,
                              bool has_scales) {
    specialization_reader reader(text);
    for (const char kind : expected) {
        std::string_view parameter = reader.next();
        if (kind == 'f') {
            const int bits = p3109_bits_of(parameter, has_scales);
            if (bits == 0 || (bits > 16 && !is_algebraic)) return false;
        } else if (kind == 'B') {
            const int size = take_number(parameter);
            if (size < 1 || size > 8192 || !parameter.empty()) return false;
        } else if (!is_p3109_rounding(parameter) || !is_p3109_saturation(reader.next())) {
            return false;
        }
    }
    return reader.at_end();
}

}}  // namespace mp::detail

namespace mp::p3109_operations { inline namespace MP_ISA_NAMESPACE {

/// Whether the library has an operation specialization, in the notation of the report; its results are then
/// the defined ones (kappa is 0).
///
///     provides("Add<Binary8p3se, Binary4p2sf, binary32, (NearestTiesToEven, SatNone)>");
///     provides("ScaledAbs<(Binary8p1uf, Binary8p4se), BFloat16, (ToOdd, SatFinite)>");
///     provides("BlockReduceAdd<32, Binary8p1uf, Binary8p4se, binary32, (StochasticA8, SatNone)>");
[[nodiscard]] constexpr bool provides(std::string_view specialization) noexcept {
    const std::size_t bracket = specialization.find('<');
    if (bracket == specialization.npos || specialization.back() != '>') return false;
    const std::string_view name = specialization.substr(0, bracket);
    const std::string_view parameters =
        specialization.substr(bracket + 1, specialization.size() - bracket - 2);
    for (const standard_operation& op : standard_operations) {
        if (name == op.name)
            return detail::has_parameters(parameters, op.parameters, op.is_algebraic,
                                          op.parameters.front() == 'B');
        if (!op.is_elementwise || name.size() < op.name.size() ||
            name.substr(name.size() - op.name.size()) != op.name)
            continue;
        const std::string_view prefix = name.substr(0, name.size() - op.name.size());
        // A scale factor before every operand, and in blocks of the result too.
        const bool is_block = prefix == "Block";
        if (!is_block && prefix != "Scaled") continue;
        char expected[12]{};
        std::size_t size = 0;
        if (is_block) expected[size++] = 'B';
        for (std::size_t i = 0; i + 2 < op.parameters.size(); ++i) {
            expected[size++] = 'f';
            expected[size++] = 'f';
        }
        if (is_block) expected[size++] = 'f';
        expected[size++] = 'f';
        expected[size++] = 'P';
        return detail::has_parameters(parameters, std::string_view(expected, size), op.is_algebraic, true);
    }
    return false;
}

}}  // namespace mp::p3109_operations
