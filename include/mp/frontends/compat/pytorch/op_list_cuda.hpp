// SPDX-License-Identifier: MIT
/// \file
/// The op list of PyTorch autocast on CUDA.
#pragma once

#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <array>

namespace mp::autocast::lists {
namespace rules {

// clang-format off
inline constexpr op_rule pytorch_cuda[] = {
    {"_convolution"sv, low}, {"_cudnn_rnn"sv, low}, {"_scaled_dot_product_flash_attention"sv, low},
    {"_thnn_fused_gru_cell"sv, low}, {"_thnn_fused_lstm_cell"sv, low}, {"_upsample_bicubic2d_aa"sv, full},
    {"_upsample_bilinear2d_aa"sv, full}, {"_upsample_nearest_exact1d"sv, full},
    {"_upsample_nearest_exact2d"sv, full}, {"_upsample_nearest_exact3d"sv, full}, {"acos"sv, full},
    {"addbmm"sv, low}, {"addcdiv"sv, promote}, {"addcmul"sv, promote}, {"addmm"sv, low}, {"addmv"sv, low},
    {"addr"sv, low}, {"asin"sv, full}, {"atan2"sv, promote}, {"baddbmm"sv, low}, {"bilinear"sv, promote},
    {"binary_cross_entropy"sv, banned, {}, {}, use_logits}, {"binary_cross_entropy_with_logits"sv, full},
    {"bmm"sv, low}, {"cdist"sv, full}, {"chain_matmul"sv, low}, {"conv1d"sv, low}, {"conv2d"sv, low},
    {"conv3d"sv, low}, {"conv_tbc"sv, low}, {"conv_transpose1d"sv, low}, {"conv_transpose2d"sv, low},
    {"conv_transpose3d"sv, low}, {"convolution"sv, low}, {"cosh"sv, full}, {"cosine_embedding_loss"sv, full},
    {"cosine_similarity"sv, full}, {"cross"sv, promote}, {"cudnn_convolution"sv, low},
    {"cudnn_convolution_transpose"sv, low}, {"cumprod"sv, full_output}, {"cumsum"sv, full_output},
    {"dist"sv, full}, {"dot"sv, promote}, {"einsum"sv, low}, {"erfinv"sv, full}, {"exp"sv, full},
    {"expm1"sv, full}, {"frobenius_norm"sv, full}, {"grid_sampler"sv, promote}, {"group_norm"sv, full},
    {"gru_cell"sv, low}, {"hinge_embedding_loss"sv, full}, {"huber_loss"sv, full}, {"index_put"sv, promote},
    {"kl_div"sv, full}, {"l1_loss"sv, full}, {"layer_norm"sv, full}, {"linalg_matrix_norm"sv, full_output},
    {"linalg_matrix_sqrth"sv, full}, {"linalg_multi_dot"sv, low}, {"linalg_vecdot"sv, low},
    {"linalg_vector_norm"sv, full_output}, {"linear"sv, low}, {"log"sv, full}, {"log10"sv, full},
    {"log1p"sv, full}, {"log2"sv, full}, {"log_softmax"sv, full_output}, {"logsumexp"sv, full},
    {"lstm_cell"sv, low}, {"margin_ranking_loss"sv, full}, {"matmul"sv, low}, {"mm"sv, low},
    {"mse_loss"sv, full}, {"multi_margin_loss"sv, full}, {"multilabel_margin_loss"sv, full}, {"mv"sv, low},
    {"native_layer_norm"sv, full}, {"nll_loss"sv, full}, {"nll_loss2d"sv, full}, {"norm"sv, append_type},
    {"nuclear_norm"sv, full}, {"pdist"sv, full}, {"poisson_nll_loss"sv, full}, {"pow"sv, full},
    {"prelu"sv, low}, {"prod"sv, full_output}, {"reciprocal"sv, full}, {"renorm"sv, full},
    {"rms_norm"sv, full}, {"rnn_relu_cell"sv, low}, {"rnn_tanh_cell"sv, low}, {"rsqrt"sv, full},
    {"scaled_dot_product_attention"sv, low}, {"scatter_add"sv, promote}, {"sinh"sv, full},
    {"smooth_l1_loss"sv, full}, {"soft_margin_loss"sv, full}, {"softmax"sv, full_output},
    {"softplus"sv, full}, {"sum"sv, full_output}, {"tan"sv, full}, {"tensordot"sv, promote},
    {"triplet_margin_loss"sv, full}, {"upsample_bicubic2d"sv, full}, {"upsample_bilinear2d"sv, full},
    {"upsample_linear1d"sv, full}, {"upsample_nearest1d"sv, full}, {"upsample_nearest2d"sv, full},
    {"upsample_nearest3d"sv, full}, {"upsample_trilinear3d"sv, full}, {"vdot"sv, promote},
};
// clang-format on

inline constexpr auto pytorch_cuda_2_11 =
    revised(pytorch_cuda, std::array{"linalg_matrix_sqrth"sv, "rms_norm"sv});

}  // namespace rules

/// What PyTorch autocast does with ops on CUDA devices. Its words: `lower_precision_fp` is lower_precision,
/// `fp32` is full_precision, `fp32_set_opt_dtype` is full_precision_output, `fp32_append_dtype` is
/// append_output_type and `promote` is promote. Ops without a rule run in the types of their arguments, which
/// is pass_through; cat and stack are among them.
///
/// Source: pytorch/pytorch, the lists AT_FORALL_* in aten/src/ATen/autocast_mode.h and their registration for CUDA in
/// aten/src/ATen/autocast_mode.cpp, which adds the two ops of cuDNN and bans binary_cross_entropy; for _cudnn_rnn, which
/// is always in half, aten/src/ATen/cudnn/AutocastRNN.cpp. tests/frontends/compat/installed compares them with an installed torch,
/// last with 2.15.0. rms_norm is in float from 2.12 on. Intel's XPU devices use the same lists without linalg_matrix_sqrth
/// and the ops of cuDNN. PyTorch registers these wrappers for the overloads of an op one by one; here an op stands once,
/// because no op has overloads with different treatments.
inline constexpr op_list pytorch_cuda{"pytorch_cuda", rules::pytorch_cuda, op_category::pass_through, "2.15"};

/// The same before: at commits d70fe7f33910 and 008ec6b1840c, and in version 2.11.0.
inline constexpr op_list pytorch_cuda_2_11{"pytorch_cuda", rules::pytorch_cuda_2_11,
                                           op_category::pass_through, "2.11"};

}  // namespace mp::autocast::lists
