// SPDX-License-Identifier: MIT
/// \file
/// The op lists of NVIDIA Apex: of O1, which casts op by op, and of O2 and O3, which cast the model; and presets.
#pragma once

#include <mp/frontends/compat/whole_model.hpp>
#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

namespace mp::autocast::lists {
namespace rules {

// clang-format off
inline constexpr op_rule apex[] = {
    {"__add__"sv, widest}, {"__div__"sv, widest}, {"__eq__"sv, widest}, {"__ge__"sv, widest},
    {"__gt__"sv, widest}, {"__iadd__"sv, widest}, {"__idiv__"sv, widest}, {"__imul__"sv, widest},
    {"__ipow__"sv, full}, {"__isub__"sv, widest}, {"__itruediv__"sv, widest}, {"__le__"sv, widest},
    {"__lt__"sv, widest}, {"__matmul__"sv, low}, {"__mul__"sv, widest}, {"__ne__"sv, widest},
    {"__pow__"sv, full}, {"__radd__"sv, widest}, {"__rdiv__"sv, widest}, {"__rmul__"sv, widest},
    {"__rpow__"sv, full}, {"__rsub__"sv, widest}, {"__rtruediv__"sv, widest}, {"__sub__"sv, widest},
    {"__truediv__"sv, widest}, {"acos"sv, full}, {"add"sv, widest}, {"addbmm"sv, low}, {"addcdiv"sv, widest},
    {"addcmul"sv, widest}, {"addmm"sv, low}, {"addmv"sv, low}, {"addr"sv, low}, {"asin"sv, full},
    {"atan2"sv, widest}, {"baddbmm"sv, low}, {"bilinear"sv, widest},
    {"binary_cross_entropy"sv, banned, {}, {}, use_logits}, {"binary_cross_entropy_with_logits"sv, full},
    {"bmm"sv, low}, {"cat"sv, widest}, {"conv1d"sv, low}, {"conv2d"sv, low}, {"conv3d"sv, low},
    {"conv_tbc"sv, low}, {"conv_transpose1d"sv, low}, {"conv_transpose2d"sv, low},
    {"conv_transpose3d"sv, low}, {"cosh"sv, full}, {"cosine_embedding_loss"sv, full},
    {"cosine_similarity"sv, full}, {"cpu"sv, full}, {"cross"sv, widest}, {"cross_entropy"sv, full},
    {"ctc_loss"sv, full}, {"cumprod"sv, full}, {"cumsum"sv, full}, {"dist"sv, full}, {"div"sv, widest},
    {"dot"sv, widest}, {"eq"sv, widest}, {"equal"sv, widest}, {"erfinv"sv, full}, {"exp"sv, full},
    {"expm1"sv, full}, {"ge"sv, widest}, {"gelu"sv, full}, {"grid_sample"sv, full}, {"group_norm"sv, full},
    {"gru"sv, low}, {"gru_cell"sv, low}, {"gt"sv, widest}, {"hinge_embedding_loss"sv, full},
    {"interpolate"sv, full}, {"kl_div"sv, full}, {"l1_loss"sv, full}, {"layer_norm"sv, full},
    {"le"sv, widest}, {"linear"sv, low}, {"local_response_norm"sv, full}, {"log"sv, full}, {"log10"sv, full},
    {"log2"sv, full}, {"log_softmax"sv, full}, {"lstm"sv, low}, {"lstm_cell"sv, low}, {"lt"sv, widest},
    {"margin_ranking_loss"sv, full}, {"matmul"sv, low}, {"mm"sv, low}, {"mse_loss"sv, full},
    {"mul"sv, widest}, {"multi_margin_loss"sv, full}, {"multilabel_margin_loss"sv, full},
    {"multilabel_soft_margin_loss"sv, full}, {"mv"sv, low}, {"ne"sv, widest}, {"nll_loss"sv, full},
    {"norm"sv, full}, {"normalize"sv, full}, {"poisson_nll_loss"sv, full}, {"pow"sv, full}, {"prelu"sv, low},
    {"prod"sv, full}, {"reciprocal"sv, full}, {"renorm"sv, full}, {"rnn_relu"sv, low},
    {"rnn_relu_cell"sv, low}, {"rnn_tanh"sv, low}, {"rnn_tanh_cell"sv, low}, {"rsqrt"sv, full},
    {"sinh"sv, full}, {"smooth_l1_loss"sv, full}, {"soft_margin_loss"sv, full}, {"softmax"sv, full},
    {"softmin"sv, full}, {"softplus"sv, full}, {"stack"sv, widest}, {"std"sv, full}, {"sum"sv, full},
    {"tan"sv, full}, {"triplet_margin_loss"sv, full}, {"var"sv, full},
};
// clang-format on

}  // namespace rules

/// What Apex amp does with functions of PyTorch at opt_level O1. FP16_FUNCS are lower_precision, FP32_FUNCS
/// full_precision, CASTS and SEQUENCE_CASTS promote_widest. Names with underscores at both ends are operators
/// of tensors, `cpu` is the method that copies to the host. The eight functions of recurrent networks come
/// from code rather than from a list. An in-place variant (`exp_`) of a full_precision function is refused if
/// an argument is half. Where the names of torch, torch.nn.functional and torch.Tensor coincide, so does
/// their treatment.
///
/// Source: NVIDIA/apex, apex/amp/lists/functional_overrides.py, torch_overrides.py and tensor_overrides.py,
/// and apex/amp/rnn_compat.py, at commit e13873debc46, the last one before amp was removed (cb65b8ed2be7), as
/// they are with CUDA 9.1 and PyTorch 1.1 or later. Earlier versions of PyTorch also had mean in full
/// precision, earlier ones of CUDA addbmm, baddbmm and bmm.
inline constexpr op_list apex{"apex", rules::apex, op_category::pass_through};

/// Apex's O2: parameters and inputs in half, batch norms in float; what the model returns is float, so that
/// the loss is. Apex's lists have no part in it.
///
/// Source: NVIDIA/apex, apex/amp/_initialize.py and apex/fp16_utils before amp was removed (cb65b8ed^). Names
/// are PyTorch's.
inline constexpr op_list apex_o2{"apex_o2", rules::norms_and_losses_in_full, op_category::lower_precision};

/// Apex's O3: everything in half, batch norms included; outputs are cast to float, so that the loss is float.
/// Source: as for apex_o2.
inline constexpr op_list apex_o3{"apex_o3", rules::losses_in_full, op_category::lower_precision};

}  // namespace mp::autocast::lists

namespace mp::autocast::presets {

/// Apex's optimisation levels; <mp/frontends/compat/apex/levels.hpp> has all of their properties.
inline constexpr preset apex_o0{"apex_o0", precision::off, &own_categories, true, "Apex O0: float"};
inline constexpr preset apex_o1{"apex_o1", precision::fp16, &lists::apex, true, "Apex O1: op by op"};
inline constexpr preset apex_o2{"apex_o2", precision::fp16, &lists::apex_o2, true,
                                "Apex O2: the model in half, batch norms and master weights in float"};
inline constexpr preset apex_o3{"apex_o3", precision::fp16, &lists::apex_o3, false,
                                "Apex O3: everything in half"};

}  // namespace mp::autocast::presets
