// SPDX-License-Identifier: MIT
/// \file
/// Policies of layers as data: in which format a layer keeps its variables, computes, and hands on its
/// result. Keras calls them dtype policies; compat/jmp/dtype_policy.hpp reads and writes them as JMP does.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/element_format.hpp>

#include <string>
#include <string_view>

namespace mp::autocast {

/// What the policy of a layer says. Integers are never cast, whatever the policy.
struct dtype_policy {
    std::string name;        ///< as its system writes it: "mixed_float16", "p=full,c=f16,o=full"
    element_format compute;  ///< floating-point inputs and variables are cast to it before the layer computes
    element_format
        variable;           ///< variables (parameters) are stored in it; regularizers and updates work in it
    element_format output;  ///< the result is cast to it

    friend bool operator==(const dtype_policy&, const dtype_policy&) = default;
};

}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The formats that Keras has names for, which are the names here; "string" and complex numbers are no formats.
inline constexpr element_format keras_formats[] = {
    element_format::f16,    element_format::bf16,   element_format::f32,    element_format::f64,
    element_format::e4m3fn, element_format::e5m2,   element_format::int8,   element_format::int16,
    element_format::int32,  element_format::int64,  element_format::uint8,  element_format::uint16,
    element_format::uint32, element_format::uint64, element_format::boolean};

constexpr bool keras_knows(element_format format) noexcept {
    for (const element_format known : keras_formats) {
        if (known == format) return true;
    }
    return false;
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Whether two policies do the same, whatever they are called.
inline bool same_formats(const dtype_policy& a, const dtype_policy& b) noexcept {
    return a.compute == b.compute && a.variable == b.variable && a.output == b.output;
}

/// The policy that Keras knows by this name. "mixed_float16" and "mixed_bfloat16" compute in 16 bits and keep
/// their variables in float32; the name of a format means that format for everything. The result of a layer
/// has the format it computes in. Throws argument_error for any other name, also of formats that Keras does not have;
/// its quantised policies ("int8_from_float32") are not known here.
///
///     dtype_policy_from_name("mixed_bfloat16").variable  // element_format::f32
///
/// Rules: keras/src/dtype_policies/dtype_policy.py and keras/src/backend/common/dtypes.py, Keras 3.15.
inline dtype_policy dtype_policy_from_name(std::string_view name) {
    using enum element_format;
    if (name == "mixed_float16") return {std::string(name), f16, f32, f16};
    if (name == "mixed_bfloat16") return {std::string(name), bf16, f32, bf16};
    std::string known;
    for (const element_format format : detail::keras_formats) {
        if (name_of(format) == name) return {std::string(name), format, format, format};
        known.append(known.empty() ? "" : ", ").append(name_of(format));
    }
    detail::throw_argument("mp::autocast::dtype_policy_from_name", "name", name,
                           "must be mixed_float16, mixed_bfloat16 or a format that Keras has: " + known);
}

/// The name by which Keras knows a policy with these formats. Throws argument_error if it has none, as for a
/// result in another format than the layer computes in.
inline std::string keras_name_of(const dtype_policy& policy) {
    using enum element_format;
    if (policy.output == policy.compute && detail::keras_knows(policy.compute)) {
        if (policy.variable == policy.compute) return std::string(name_of(policy.compute));
        if (policy.variable == f32 && policy.compute == f16) return "mixed_float16";
        if (policy.variable == f32 && policy.compute == bf16) return "mixed_bfloat16";
    }
    detail::throw_argument(
        "mp::autocast::keras_name_of", "policy", policy.name,
        "must have one format that Keras has throughout, or be mixed_float16 or mixed_bfloat16");
}

}}  // namespace mp::autocast
