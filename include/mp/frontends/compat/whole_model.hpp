// SPDX-License-Identifier: MIT
/// \file
/// The ops that stay in float in systems that cast a model as a whole instead of op by op: Keras's policies,
/// Apex's O2 and O3, JMP; and the precision of a region for the format that a model or a layer computes in.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/autocast/element_format.hpp>
#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>

#include <string_view>

namespace mp::autocast::lists {
namespace rules {

// clang-format off
inline constexpr op_rule losses_in_full[] = {
    {"binary_cross_entropy"sv, full}, {"binary_cross_entropy_with_logits"sv, full},
    {"cross_entropy_loss"sv, full}, {"huber_loss"sv, full}, {"kl_div"sv, full}, {"l1_loss"sv, full},
    {"mse_loss"sv, full}, {"nll_loss"sv, full},
};

inline constexpr op_rule norms_and_losses_in_full[] = {
    {"batch_norm"sv, full}, {"binary_cross_entropy"sv, full}, {"binary_cross_entropy_with_logits"sv, full},
    {"cross_entropy_loss"sv, full}, {"cudnn_batch_norm"sv, full}, {"huber_loss"sv, full},
    {"kl_div"sv, full}, {"l1_loss"sv, full}, {"mse_loss"sv, full}, {"native_batch_norm"sv, full},
    {"nll_loss"sv, full},
};
// clang-format on

}  // namespace rules

static_assert(is_sorted_list(rules::losses_in_full));
static_assert(is_sorted_list(rules::norms_and_losses_in_full));

}  // namespace mp::autocast::lists

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The precision of a region whose ops compute in this format.
inline precision precision_of(std::string_view function, std::string_view argument, element_format format) {
    switch (format) {
        case element_format::f16:
            return precision::fp16;
        case element_format::bf16:
            return precision::bf16;
        case element_format::f32:
            return precision::off;
        default:
            throw_argument(function, argument, name_of(format),
                           "must be float16, bfloat16 or float32, the formats that regions compute in");
    }
}

}}  // namespace mp::detail
