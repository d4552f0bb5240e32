// SPDX-License-Identifier: MIT
/// \file
/// What a cast ledger has counted, as plain data.
#pragma once

#include <mp/nn/autocast/cast_ledger.hpp>

#include <optional>
#include <vector>

namespace mp::autocast {

/// A copy of all that a ledger has counted, in the order in which it first occurred. It may also come from
/// elsewhere, such as read_ledger_csv(), which knows the casts alone.
struct ledger_contents {
    std::vector<cast_record> casts{};
    std::vector<input_record> inputs{};
    std::vector<op_record> ops{};
    std::vector<product_record> products{};
    std::optional<non_finite_value> first_non_finite{};
};

}  // namespace mp::autocast

namespace mp::autocast { inline namespace MP_ISA_NAMESPACE {

/// Copies the ledger. Where other threads still fill it, the parts may be from different moments.
inline ledger_contents contents_of(const cast_ledger& ledger) {
    return {ledger.casts(), ledger.inputs(), ledger.ops(), ledger.products(), ledger.first_non_finite()};
}

}}  // namespace mp::autocast
