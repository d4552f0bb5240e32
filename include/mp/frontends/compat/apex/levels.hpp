// SPDX-License-Identifier: MIT
/// \file
/// The optimisation levels O0 to O3 of NVIDIA Apex: what they set, what may be changed, and which format
/// everything then has.
///
/// Rules: apex/amp/frontend.py and _initialize.py, before amp was removed. The scaler that goes with them is
/// mp::apex_policy in compat/apex/scaler.hpp, the lists of ops are in compat/apex/op_lists.hpp.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/error.hpp>
#include <mp/frontends/compat/apex/op_lists.hpp>
#include <mp/frontends/compat/whole_model.hpp>
#include <mp/nn/autocast/element_format.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mp::autocast {

/// An opt_level.
enum class apex_level : unsigned char {
    o0,  ///< everything in float32
    o1,  ///< parameters in float32, each op cast according to a list
    o2,  ///< parameters in float16 except batch norms', with float32 master weights
    o3   ///< everything in float16
};

/// A fixed loss scale, or the word "dynamic".
struct apex_loss_scale {
    bool dynamic = true;
    double value = 1.0;  ///< of a fixed scale; without meaning for a dynamic one

    /// The scale that does not move.
    static constexpr apex_loss_scale fixed(double value) noexcept { return {false, value}; }

    friend constexpr bool operator==(const apex_loss_scale& a, const apex_loss_scale& b) noexcept {
        return a.dynamic == b.dynamic && (a.dynamic || mp::detail::same_value(a.value, b.value));
    }
};

/// What amp.initialize works with. An empty optional is Python's None.
struct apex_properties {
    apex_level level = apex_level::o1;
    std::optional<element_format> cast_model_type;  ///< format of the parameters; empty: as they are
    bool patch_functions = true;                    ///< whether ops are cast by list
    std::optional<bool> keep_batchnorm_fp32;        ///< whether batch norms' parameters are left in float32
    std::optional<bool> master_weights;             ///< whether the optimizer updates float32 copies
    apex_loss_scale loss_scale;

    friend constexpr bool operator==(const apex_properties&, const apex_properties&) = default;
};

/// Properties that shall differ from those of the level; empty ones stay as the level has them.
struct apex_overrides {
    std::optional<element_format> cast_model_type{};
    std::optional<bool> patch_functions{};
    std::optional<bool> keep_batchnorm_fp32{};
    std::optional<bool> master_weights{};
    std::optional<apex_loss_scale> loss_scale{};
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// "O0" to "O3"; "unknown" for a value that is no enumerator.
constexpr std::string_view name_of(apex_level level) noexcept {
    constexpr std::string_view names[] = {"O0", "O1", "O2", "O3"};
    return level <= apex_level::o3 ? names[static_cast<int>(level)] : "unknown";
}

/// The level of this name, "O0" to "O3". Throws argument_error for any other text.
inline apex_level apex_level_from_name(std::string_view name) {
    using enum apex_level;
    for (const apex_level level : {o0, o1, o2, o3}) {
        if (name == name_of(level)) return level;
    }
    detail::throw_argument("mp::autocast::apex_level_from_name", "name", name,
                           "must be O0, O1, O2 or O3 (the letter O)");
}

}}  // namespace mp::autocast

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::string_view apex_function = "mp::autocast::apex_properties_of";

constexpr autocast::apex_properties apex_defaults(autocast::apex_level level) {
    using enum autocast::apex_level;
    using scale = autocast::apex_loss_scale;
    switch (level) {
        case o0:
            return {o0, element_format::f32, false, std::nullopt, false, scale::fixed(1.0)};
        case o2:
            return {o2, element_format::f16, false, true, true, scale{}};
        case o3:
            return {o3, element_format::f16, false, false, false, scale::fixed(1.0)};
        case o1:
            break;
    }
    return {o1, std::nullopt, true, std::nullopt, std::nullopt, scale{}};
}

/// Positive and finite, told from the bits.
constexpr bool is_usable_loss_scale(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    return bits != 0 && bits < 0x7ff0'0000'0000'0000;
}

inline void check_apex_overrides(autocast::apex_level level, const autocast::apex_overrides& overrides) {
    const bool by_op = level == autocast::apex_level::o1;
    if (overrides.cast_model_type) {
        const std::string_view type = name_of(*overrides.cast_model_type);
        if (!is_floating(*overrides.cast_model_type)) {
            throw_argument(apex_function, "cast_model_type", type, "must be a floating-point format");
        }
        if (by_op && *overrides.cast_model_type != element_format::f32) {
            throw_argument(apex_function, "cast_model_type", type,
                           "must be float32 with O1, which casts around ops and leaves the parameters in "
                           "float32; O2 and O3 cast the model");
        }
    }
    if (overrides.patch_functions.value_or(false) && !by_op) {
        throw_argument(apex_function, "patch_functions", true, "must be false unless the level is O1");
    }
    if (overrides.keep_batchnorm_fp32 && by_op) {
        throw_argument(apex_function, "keep_batchnorm_fp32", *overrides.keep_batchnorm_fp32,
                       "must not be set with O1, whose list already runs batch norms in float32");
    }
    if (overrides.master_weights && by_op) {
        throw_argument(apex_function, "master_weights", *overrides.master_weights,
                       "must not be set with O1, where the parameters themselves are float32");
    }
    if (overrides.loss_scale && !overrides.loss_scale->dynamic &&
        !is_usable_loss_scale(overrides.loss_scale->value)) {
        throw_argument(apex_function, "loss_scale", overrides.loss_scale->value,
                       "must be dynamic or a positive finite number");
    }
}

}}  // namespace mp::detail

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// The properties of a level with some of them changed. Throws argument_error for what Apex refuses: casting
/// the model, batch norms or master weights with O1, and patching functions with any other level; also for a
/// level that is no enumerator, a format of integers, and a loss scale that is not positive and finite.
///
///     apex_properties_of(apex_level::o2, {.loss_scale = apex_loss_scale::fixed(128.0)});
inline apex_properties apex_properties_of(apex_level level, const apex_overrides& overrides = {}) {
    if (level > apex_level::o3) {
        detail::throw_argument(detail::apex_function, "level", static_cast<unsigned>(level),
                               "must be an enumerator of mp::autocast::apex_level");
    }
    detail::check_apex_overrides(level, overrides);
    apex_properties result = detail::apex_defaults(level);
    if (overrides.cast_model_type) result.cast_model_type = overrides.cast_model_type;
    if (overrides.patch_functions) result.patch_functions = *overrides.patch_functions;
    if (overrides.keep_batchnorm_fp32) result.keep_batchnorm_fp32 = overrides.keep_batchnorm_fp32;
    if (overrides.master_weights) result.master_weights = overrides.master_weights;
    if (overrides.loss_scale) result.loss_scale = *overrides.loss_scale;
    return result;
}

/// The format of a float32 parameter or buffer of the model after amp.initialize. A batch norm stays in
/// float32 where keep_batchnorm_fp32 is true; without a value it is cast like everything else.
///
/// \param is_batch_norm  whether it belongs to a batch norm with learned scale and shift; Apex casts others
constexpr element_format parameter_format(const apex_properties& properties, bool is_batch_norm) noexcept {
    if (is_batch_norm && properties.keep_batchnorm_fp32.value_or(false)) return element_format::f32;
    return properties.cast_model_type.value_or(element_format::f32);
}

/// The format that the optimizer updates parameters in: float32 with master weights, else their own.
constexpr element_format update_format(const apex_properties& properties, bool is_batch_norm) noexcept {
    return properties.master_weights.value_or(false) ? element_format::f32
                                                     : parameter_format(properties, is_batch_norm);
}

/// Whether each op is cast according to the list: lower precision, float32, widest, or banned.
constexpr bool casts_ops(const apex_properties& properties) noexcept {
    return properties.patch_functions;
}

/// The format that floating-point inputs of the model are cast to; empty: they stay as they are.
constexpr std::optional<element_format> input_format(const apex_properties& properties) noexcept {
    return properties.cast_model_type;
}

/// The format that floating-point results of the model are cast to; empty: they stay as they are.
///
/// \param cast_model_outputs  the argument of amp.initialize; empty: float32 if the model is cast at all
constexpr std::optional<element_format> output_format(
    const apex_properties& properties,
    std::optional<element_format> cast_model_outputs = std::nullopt) noexcept {
    if (cast_model_outputs) return cast_model_outputs;
    return properties.cast_model_type ? std::optional(element_format::f32) : std::nullopt;
}

/// The options of a region in which ops run as after amp.initialize with these properties: by Apex's list
/// with O1, all in the model's format with O2 and O3 (batch norms in float where keep_batchnorm_fp32 is true,
/// losses always), and as they are with O0. Throws argument_error for model formats that regions do not have.
///
///     mp::autocast_region region(options_of(apex_properties_of(apex_level::o2)));
inline autocast_options options_of(const apex_properties& properties) {
    if (casts_ops(properties)) return {.cpu = precision::fp16, .cuda = precision::fp16, .list = &lists::apex};
    const precision value = detail::precision_of("mp::autocast::options_of", "properties.cast_model_type",
                                                 properties.cast_model_type.value_or(element_format::f32));
    const bool norms_in_float = properties.keep_batchnorm_fp32.value_or(false);
    return {.cpu = value, .cuda = value, .list = norms_in_float ? &lists::apex_o2 : &lists::apex_o3};
}

}}  // namespace mp::autocast
