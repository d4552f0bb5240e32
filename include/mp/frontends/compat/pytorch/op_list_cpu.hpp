// SPDX-License-Identifier: MIT
/// \file
/// The op list of PyTorch autocast on the CPU.
#pragma once

#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <array>

namespace mp::autocast::lists {
namespace rules {

// clang-format off
inline constexpr op_rule pytorch_cpu[] = {
    {"_addmm_activation"sv, low}, {"_convolution"sv, low}, {"_grid_sampler_2d_cpu_fallback"sv, full},
    {"_lu_with_info"sv, full}, {"_native_multi_head_attention"sv, low}, {"adaptive_avg_pool3d"sv, full},
    {"adaptive_max_pool3d"sv, full}, {"addbmm"sv, low}, {"addmm"sv, low}, {"avg_pool3d"sv, full},
    {"baddbmm"sv, low}, {"binary_cross_entropy"sv, full}, {"binary_cross_entropy_with_logits"sv, full},
    {"bmm"sv, low}, {"cat"sv, promote}, {"cdist"sv, full}, {"cholesky_inverse"sv, full},
    {"cholesky_solve"sv, full}, {"conv1d"sv, low}, {"conv2d"sv, low}, {"conv3d"sv, low}, {"conv_tbc"sv, low},
    {"conv_transpose1d"sv, low}, {"conv_transpose2d"sv, low}, {"conv_transpose3d"sv, low},
    {"cosine_embedding_loss"sv, full}, {"cross_entropy_loss"sv, full}, {"ctc_loss"sv, full},
    {"fake_quantize_per_tensor_affine"sv, full}, {"fft_fft"sv, full}, {"fft_fft2"sv, full},
    {"fft_fftn"sv, full}, {"fft_hfft"sv, full}, {"fft_ifft"sv, full}, {"fft_ifft2"sv, full},
    {"fft_ifftn"sv, full}, {"fft_ihfft"sv, full}, {"fft_irfft"sv, full}, {"fft_irfft2"sv, full},
    {"fft_irfftn"sv, full}, {"fft_rfft"sv, full}, {"fft_rfft2"sv, full}, {"fft_rfftn"sv, full},
    {"fractional_max_pool2d"sv, full}, {"fractional_max_pool3d"sv, full}, {"geqrf"sv, full},
    {"grid_sampler"sv, full}, {"grid_sampler_2d"sv, full}, {"grid_sampler_3d"sv, full},
    {"hinge_embedding_loss"sv, full}, {"huber_loss"sv, full}, {"index_copy"sv, promote}, {"inverse"sv, full},
    {"kl_div"sv, full}, {"l1_loss"sv, full}, {"linalg_cholesky"sv, full}, {"linalg_cholesky_ex"sv, full},
    {"linalg_cond"sv, full}, {"linalg_eig"sv, full}, {"linalg_eigh"sv, full}, {"linalg_eigvals"sv, full},
    {"linalg_eigvalsh"sv, full}, {"linalg_householder_product"sv, full}, {"linalg_inv"sv, full},
    {"linalg_inv_ex"sv, full}, {"linalg_lstsq"sv, full}, {"linalg_matrix_rank"sv, full},
    {"linalg_matrix_sqrth"sv, full}, {"linalg_qr"sv, full}, {"linalg_solve"sv, full}, {"linalg_svd"sv, full},
    {"linalg_svdvals"sv, full}, {"linalg_tensorinv"sv, full}, {"linalg_tensorsolve"sv, full},
    {"linalg_vecdot"sv, low}, {"linear"sv, low}, {"lu_solve"sv, full}, {"margin_ranking_loss"sv, full},
    {"matmul"sv, low}, {"max_pool3d"sv, full}, {"max_unpool2d"sv, full}, {"max_unpool3d"sv, full},
    {"mkldnn_rnn_layer"sv, low}, {"mm"sv, low}, {"mse_loss"sv, full}, {"multi_margin_loss"sv, full},
    {"multilabel_margin_loss"sv, full}, {"multilabel_margin_loss_forward"sv, full}, {"nanquantile"sv, full},
    {"nll_loss"sv, full}, {"nll_loss2d"sv, full}, {"orgqr"sv, full}, {"ormqr"sv, full}, {"pinverse"sv, full},
    {"poisson_nll_loss"sv, full}, {"polar"sv, full}, {"prelu"sv, low}, {"prod"sv, full}, 
    {"quantile"sv, full}, {"reflection_pad1d"sv, full}, {"reflection_pad2d"sv, full},
    {"replication_pad1d"sv, full}, {"replication_pad2d"sv, full}, {"replication_pad3d"sv, full},
    {"scaled_dot_product_attention"sv, low}, {"smooth_l1_loss"sv, full}, {"soft_margin_loss"sv, full},
    {"stack"sv, promote}, {"stft"sv, full}, {"svd"sv, full}, {"trace"sv, full}, {"triangular_solve"sv, full},
    {"triplet_margin_loss"sv, full}, {"view_as_complex"sv, full},
};
// clang-format on

inline constexpr auto pytorch_cpu_2_11 =
    revised(pytorch_cpu, std::array{"linalg_matrix_sqrth"sv},
            std::array{op_rule{"cholesky"sv, full}, op_rule{"qr"sv, full}});

}  // namespace rules

/// What PyTorch autocast does with ops on the CPU, mostly in bfloat16; pytorch_cuda says what its words are
/// called here. It differs from CUDA in more than the format: binary_cross_entropy is allowed and runs in
/// float, softmax, sum, exp and layer_norm have no rule, and cat and stack promote.
///
/// Source: pytorch/pytorch, aten/src/ATen/autocast_mode.cpp, the registration for AutocastCPU; compared with torch
/// 2.15.0 as pytorch_cuda is. PyTorch registers these wrappers for the overloads of an op one by one; here an op stands
/// once, because no op has overloads with different treatments.
inline constexpr op_list pytorch_cpu{"pytorch_cpu", rules::pytorch_cpu, op_category::pass_through, "2.15"};

/// The same at commit 008ec6b1840c, when cholesky and qr were there without linalg.
inline constexpr op_list pytorch_cpu_2_11{"pytorch_cpu", rules::pytorch_cpu_2_11, op_category::pass_through,
                                          "2.11"};

}  // namespace mp::autocast::lists
