// SPDX-License-Identifier: MIT
/// \file
/// What the headers that import other systems' scaler states have in common. The text is what Python's
/// json.dumps or print makes of the system's state.
///
///     mp::dynamic_loss_scaler scaler;
///     scaler.restore(mp::import_pytorch_state(R"({"scale": 32768.0, "growth_factor": 2.0, ...})"));
///
/// The imported scaler moves as the original would have. All functions throw mp::argument_error, with the
/// place in the text or the name of the key, if the text is not one flat object, a key is missing, there
/// twice or not known, or a value is none that a scaler can continue from. A tensor is accepted around a
/// single number as long as it is whole, such as tensor([65536.], device='cuda:0'); tensors are printed with
/// four digits, so print others with .item().
#pragma once

#include <mp/error.hpp>
#include <mp/nn/scaling/flat_object.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::int64_t most_iterations = std::int64_t{1} << 62;
inline constexpr std::int64_t largest_int32 = 2147483647;

inline foreign_fields read_fields(std::string_view function, std::string_view text) {
    foreign_reader reader(function, text);
    flat_object object = reader.read_flat_object();
    reader.require_end();
    return {function, std::move(object)};
}

/// A scale that the original keeps as float: rounded once, as there.
inline float float_of(foreign_fields& fields, std::string_view name) {
    const float number = scale_as_float(fields.number(name));
    if (is_non_finite(number)) fields.fail(std::string(name) + " is beyond the range of float");
    return number;
}

inline std::int32_t int32_of(foreign_fields& fields, std::string_view name, std::int64_t least) {
    return static_cast<std::int32_t>(fields.integer(name, least, largest_int32));
}

/// What the rules of the policy say to what was read.
template <class Policy>
saved_loss_scaler<Policy> validated(const foreign_fields& fields, const saved_loss_scaler<Policy>& saved) {
    fields.finish();
    attempt<argument_error>(
        [&] {
            saved.policy.validate();
            validate_scale_state(saved.policy, saved.state);
        },
        [&](const argument_error& refused) { fields.fail(refused.what()); });
    return saved;
}

}}  // namespace mp::detail
