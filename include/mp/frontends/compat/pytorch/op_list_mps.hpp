// SPDX-License-Identifier: MIT
/// \file
/// The op list of PyTorch autocast on Metal.
#pragma once

#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <array>

namespace mp::autocast::lists {
namespace rules {

// clang-format off
inline constexpr op_rule pytorch_mps[] = {
    {"_convolution"sv, low}, {"_mps_convolution"sv, low}, {"acos"sv, full}, {"addbmm"sv, low},
    {"addcdiv"sv, promote}, {"addcmul"sv, promote}, {"addmm"sv, low}, {"addmv"sv, low}, {"addr"sv, low},
    {"asin"sv, full}, {"atan2"sv, promote}, {"baddbmm"sv, low}, {"batch_norm"sv, full},
    {"bilinear"sv, promote}, {"binary_cross_entropy_with_logits"sv, full}, {"bmm"sv, low}, {"cdist"sv, full},
    {"chain_matmul"sv, low}, {"conv1d"sv, low}, {"conv2d"sv, low}, {"conv3d"sv, low}, {"conv_tbc"sv, low},
    {"conv_transpose1d"sv, low}, {"conv_transpose2d"sv, low}, {"conv_transpose3d"sv, full},
    {"convolution"sv, low}, {"cosh"sv, full}, {"cosine_embedding_loss"sv, full},
    {"cosine_similarity"sv, full}, {"cross"sv, promote}, {"cumprod"sv, full}, {"cumsum"sv, full},
    {"dist"sv, full}, {"dot"sv, promote}, {"einsum"sv, low}, {"erfinv"sv, full}, {"exp"sv, full},
    {"expm1"sv, full}, {"frobenius_norm"sv, full}, {"grid_sampler"sv, promote}, {"group_norm"sv, full},
    {"hinge_embedding_loss"sv, full}, {"huber_loss"sv, full}, {"index_put"sv, promote}, {"kl_div"sv, full},
    {"l1_loss"sv, full}, {"layer_norm"sv, full}, {"linalg_matrix_norm"sv, full}, {"linalg_multi_dot"sv, low},
    {"linalg_vector_norm"sv, full}, {"linear"sv, low}, {"log"sv, full}, {"log10"sv, full}, {"log1p"sv, full},
    {"log2"sv, full}, {"log_softmax"sv, full}, {"logsumexp"sv, full}, {"lstm_cell"sv, low},
    {"margin_ranking_loss"sv, full}, {"matmul"sv, low}, {"mm"sv, low}, {"mse_loss"sv, full},
    {"multi_margin_loss"sv, full}, {"multilabel_margin_loss"sv, full}, {"mv"sv, low},
    {"native_layer_norm"sv, full}, {"nll_loss"sv, full}, {"nll_loss2d"sv, full}, {"nuclear_norm"sv, full},
    {"pdist"sv, full}, {"poisson_nll_loss"sv, full}, {"pow"sv, full}, {"prelu"sv, low}, {"prod"sv, full},
    {"reciprocal"sv, full}, {"renorm"sv, full}, {"rsqrt"sv, full}, {"scaled_dot_product_attention"sv, low},
    {"scatter_add"sv, promote}, {"sinh"sv, full}, {"smooth_l1_loss"sv, full}, {"soft_margin_loss"sv, full},
    {"softmax"sv, full}, {"softplus"sv, full}, {"sum"sv, full}, {"tan"sv, full}, {"tensordot"sv, promote},
    {"triplet_margin_loss"sv, full},
};
// clang-format on

inline constexpr auto pytorch_mps_2_5 =
    revised(pytorch_mps, std::array{"conv3d"sv, "conv_transpose3d"sv, "scaled_dot_product_attention"sv});

}  // namespace rules

/// What PyTorch autocast does with ops on MPS devices, Apple's graphics processors; pytorch_cuda says what
/// its words are called here. The ops that only get another type of result on CUDA are plainly run in float
/// here, norm has no rule, batch_norm has one, and nothing is banned.
///
/// Source: pytorch/pytorch, aten/src/ATen/autocast_mode.cpp, the registration for AutocastMPS; compared with torch
/// 2.15.0 as pytorch_cuda is. Metal's conv_transpose3d takes no 16 bits. PyTorch registers these wrappers for the
/// overloads of an op one by one; here an op stands once, because no op has overloads with different treatments.
inline constexpr op_list pytorch_mps{"pytorch_mps", rules::pytorch_mps, op_category::pass_through, "2.15"};

/// The same at commit 008ec6b1840c. Attention came in 2.6 (pytorch issue 141774), the convolutions in August 2025
/// (pull requests 160345 and 160423).
inline constexpr op_list pytorch_mps_2_5{"pytorch_mps", rules::pytorch_mps_2_5, op_category::pass_through,
                                         "2.5"};

}  // namespace mp::autocast::lists
