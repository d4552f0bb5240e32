// SPDX-License-Identifier: MIT
/// \file
/// The states of Apex's scalers, to go on here with a run that began there. See state_fields.hpp.
#pragma once

#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/error.hpp>
#include <mp/frontends/compat/apex/scaler.hpp>
#include <mp/frontends/compat/state_fields.hpp>
#include <mp/nn/scaling/flat_object.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/policy.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline saved_loss_scaler<apex_policy> apex_scaler(foreign_fields fields, const apex_policy& policy) {
    saved_loss_scaler<apex_policy> saved{policy, initial_scale_state(policy)};
    saved.state.scale = fields.number("loss_scale");
    saved.state.growth.tracker = int32_of(fields, "unskipped", 0);
    return validated(fields, saved);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// One scaler of apex.amp.state_dict(): loss_scale and unskipped. Apex saves no parameters, so they are those
/// of `policy`; it does not save either whether the scale was static.
[[nodiscard]] inline saved_loss_scaler<apex_policy> import_apex_state(std::string_view text,
                                                                      const apex_policy& policy = {}) {
    policy.validate();
    return detail::apex_scaler(detail::read_fields("mp::import_apex_state", text), policy);
}

/// All scalers of apex.amp.state_dict(): {"loss_scaler0": {...}, "loss_scaler1": {...}}, in the order of
/// their numbers.
[[nodiscard]] inline std::vector<saved_loss_scaler<apex_policy>> import_apex_states(
    std::string_view text, const apex_policy& policy = {}) {
    constexpr std::string_view function = "mp::import_apex_states";
    policy.validate();
    std::vector<saved_loss_scaler<apex_policy>> scalers;
    detail::foreign_reader reader(function, text);
    reader.read_object([&](std::string_view key) {
        const std::string expected = "loss_scaler" + detail::error_text(scalers.size());
        if (key != expected) {
            reader.fail("the key is " + detail::quoted_excerpt(key) + " where " +
                        detail::quoted_excerpt(expected) + " was expected");
        }
        scalers.push_back(detail::apex_scaler({function, reader.read_flat_object()}, policy));
    });
    reader.require_end();
    return scalers;
}

}}  // namespace mp
