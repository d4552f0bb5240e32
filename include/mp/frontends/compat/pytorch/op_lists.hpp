// SPDX-License-Identifier: MIT
/// \file
/// The op lists of PyTorch autocast, and its ways to run a model in mixed precision as presets.
#pragma once

#include <mp/frontends/compat/op_words.hpp>
#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

#include <array>

namespace mp::autocast::lists {
namespace rules {

/// Calls OP(name, word on CUDA, word on the CPU, word on MPS devices) for every rule.
// clang-format off
#define MP_PYTORCH_OPS(OP) \
    OP(_addmm_activation, none, low, none) OP(_convolution, low, low, low) OP(_cudnn_rnn, low, none, none) \
    OP(_grid_sampler_2d_cpu_fallback, none, full, none) OP(_lu_with_info, none, full, none) \
    OP(_mps_convolution, none, none, low) OP(_native_multi_head_attention, none, low, none) \
    OP(_scaled_dot_product_flash_attention, low, none, none) OP(_thnn_fused_gru_cell, low, none, none) \
    OP(_thnn_fused_lstm_cell, low, none, none) OP(_upsample_bicubic2d_aa, full, none, none) \
    OP(_upsample_bilinear2d_aa, full, none, none) OP(_upsample_nearest_exact1d, full, none, none) \
    OP(_upsample_nearest_exact2d, full, none, none) OP(_upsample_nearest_exact3d, full, none, none) \
    OP(acos, full, none, full) OP(adaptive_avg_pool3d, none, full, none) \
    OP(adaptive_max_pool3d, none, full, none) OP(addbmm, low, low, low) OP(addcdiv, promote, none, promote) \
    OP(addcmul, promote, none, promote) OP(addmm, low, low, low) OP(addmv, low, none, low) \
    OP(addr, low, none, low) OP(asin, full, none, full) OP(atan2, promote, none, promote) \
    OP(avg_pool3d, none, full, none) OP(baddbmm, low, low, low) OP(batch_norm, none, none, full) \
    OP(bilinear, promote, none, promote) OP(binary_cross_entropy, banned, full, none) \
    OP(binary_cross_entropy_with_logits, full, full, full) OP(bmm, low, low, low) \
    OP(cat, none, promote, none) OP(cdist, full, full, full) OP(chain_matmul, low, none, low) \
    OP(cholesky_inverse, none, full, none) OP(cholesky_solve, none, full, none) OP(conv1d, low, low, low) \
    OP(conv2d, low, low, low) OP(conv3d, low, low, low) OP(conv_tbc, low, low, low) \
    OP(conv_transpose1d, low, low, low) OP(conv_transpose2d, low, low, low) \
    OP(conv_transpose3d, low, low, full) OP(convolution, low, none, low) OP(cosh, full, none, full) \
    OP(cosine_embedding_loss, full, full, full) OP(cosine_similarity, full, none, full) \
    OP(cross, promote, none, promote) OP(cross_entropy_loss, none, full, none) \
    OP(ctc_loss, none, full, none) OP(cudnn_convolution, low, none, none) \
    OP(cudnn_convolution_transpose, low, none, none) OP(cumprod, full_output, none, full) \
    OP(cumsum, full_output, none, full) OP(dist, full, none, full) OP(dot, promote, none, promote) \
    OP(einsum, low, none, low) OP(erfinv, full, none, full) OP(exp, full, none, full) \
    OP(expm1, full, none, full) OP(fake_quantize_per_tensor_affine, none, full, none) \
    OP(fft_fft, none, full, none) OP(fft_fft2, none, full, none) OP(fft_fftn, none, full, none) \
    OP(fft_hfft, none, full, none) OP(fft_ifft, none, full, none) OP(fft_ifft2, none, full, none) \
    OP(fft_ifftn, none, full, none) OP(fft_ihfft, none, full, none) OP(fft_irfft, none, full, none) \
    OP(fft_irfft2, none, full, none) OP(fft_irfftn, none, full, none) OP(fft_rfft, none, full, none) \
    OP(fft_rfft2, none, full, none) OP(fft_rfftn, none, full, none) \
    OP(fractional_max_pool2d, none, full, none) OP(fractional_max_pool3d, none, full, none) \
    OP(frobenius_norm, full, none, full) OP(geqrf, none, full, none) \
    OP(grid_sampler, promote, full, promote) OP(grid_sampler_2d, none, full, none) \
    OP(grid_sampler_3d, none, full, none) OP(group_norm, full, none, full) OP(gru_cell, low, none, none) \
    OP(hinge_embedding_loss, full, full, full) OP(huber_loss, full, full, full) \
    OP(index_copy, none, promote, none) OP(index_put, promote, none, promote) OP(inverse, none, full, none) \
    OP(kl_div, full, full, full) OP(l1_loss, full, full, full) OP(layer_norm, full, none, full) \
    OP(linalg_cholesky, none, full, none) OP(linalg_cholesky_ex, none, full, none) \
    OP(linalg_cond, none, full, none) OP(linalg_eig, none, full, none) OP(linalg_eigh, none, full, none) \
    OP(linalg_eigvals, none, full, none) OP(linalg_eigvalsh, none, full, none) \
    OP(linalg_householder_product, none, full, none) OP(linalg_inv, none, full, none) \
    OP(linalg_inv_ex, none, full, none) OP(linalg_lstsq, none, full, none) \
    OP(linalg_matrix_norm, full_output, none, full) OP(linalg_matrix_rank, none, full, none) \
    OP(linalg_matrix_sqrth, full, full, none) OP(linalg_multi_dot, low, none, low) \
    OP(linalg_qr, none, full, none) OP(linalg_solve, none, full, none) OP(linalg_svd, none, full, none) \
    OP(linalg_svdvals, none, full, none) OP(linalg_tensorinv, none, full, none) \
    OP(linalg_tensorsolve, none, full, none) OP(linalg_vecdot, low, low, none) \
    OP(linalg_vector_norm, full_output, none, full) OP(linear, low, low, low) OP(log, full, none, full) \
    OP(log10, full, none, full) OP(log1p, full, none, full) OP(log2, full, none, full) \
    OP(log_softmax, full_output, none, full) OP(logsumexp, full, none, full) OP(lstm_cell, low, none, low) \
    OP(lu_solve, none, full, none) OP(margin_ranking_loss, full, full, full) OP(matmul, low, low, low) \
    OP(max_pool3d, none, full, none) OP(max_unpool2d, none, full, none) OP(max_unpool3d, none, full, none) \
    OP(mkldnn_rnn_layer, none, low, none) OP(mm, low, low, low) OP(mse_loss, full, full, full) \
    OP(multi_margin_loss, full, full, full) OP(multilabel_margin_loss, full, full, full) \
    OP(multilabel_margin_loss_forward, none, full, none) OP(mv, low, none, low) \
    OP(nanquantile, none, full, none) OP(native_layer_norm, full, none, full) OP(nll_loss, full, full, full) \
    OP(nll_loss2d, full, full, full) OP(norm, append_type, none, none) OP(nuclear_norm, full, none, full) \
    OP(orgqr, none, full, none) OP(ormqr, none, full, none) OP(pdist, full, none, full) \
    OP(pinverse, none, full, none) OP(poisson_nll_loss, full, full, full) OP(polar, none, full, none) \
    OP(pow, full, none, full) OP(prelu, low, low, low) OP(prod, full_output, full, full) \
    OP(quantile, none, full, none) OP(reciprocal, full, none, full) OP(reflection_pad1d, none, full, none) \
    OP(reflection_pad2d, none, full, none) OP(renorm, full, none, full) \
    OP(replication_pad1d, none, full, none) OP(replication_pad2d, none, full, none) \
    OP(replication_pad3d, none, full, none) OP(rms_norm, full, none, none) \
    OP(rnn_relu_cell, low, none, none) OP(rnn_tanh_cell, low, none, none) OP(rsqrt, full, none, full) \
    OP(scaled_dot_product_attention, low, low, low) OP(scatter_add, promote, none, promote) \
    OP(sinh, full, none, full) OP(smooth_l1_loss, full, full, full) OP(soft_margin_loss, full, full, full) \
    OP(softmax, full_output, none, full) OP(softplus, full, none, full) OP(stack, none, promote, none) \
    OP(stft, none, full, none) OP(sum, full_output, none, full) OP(svd, none, full, none) \
    OP(tan, full, none, full) OP(tensordot, promote, none, promote) OP(trace, none, full, none) \
    OP(triangular_solve, none, full, none) OP(triplet_margin_loss, full, full, full) \
    OP(upsample_bicubic2d, full, none, none) OP(upsample_bilinear2d, full, none, none) \
    OP(upsample_linear1d, full, none, none) OP(upsample_nearest1d, full, none, none) \
    OP(upsample_nearest2d, full, none, none) OP(upsample_nearest3d, full, none, none) \
    OP(upsample_trilinear3d, full, none, none) OP(vdot, promote, none, none) \
    OP(view_as_complex, none, full, none)
// clang-format on

#define MP_OP(name, cuda, cpu, mps) MP_OP_##cuda(#name)
inline constexpr op_rule pytorch_cuda[] = {MP_PYTORCH_OPS(MP_OP)};
#undef MP_OP

#define MP_OP(name, cuda, cpu, mps) MP_OP_##cpu(#name)
inline constexpr op_rule pytorch_cpu[] = {MP_PYTORCH_OPS(MP_OP)};
#undef MP_OP

#define MP_OP(name, cuda, cpu, mps) MP_OP_##mps(#name)
inline constexpr op_rule pytorch_mps[] = {MP_PYTORCH_OPS(MP_OP)};
#undef MP_OP
#undef MP_PYTORCH_OPS

inline constexpr auto pytorch_cuda_2_11 =
    revised(pytorch_cuda, std::array{"linalg_matrix_sqrth"sv, "rms_norm"sv});
inline constexpr auto pytorch_cpu_2_11 =
    revised(pytorch_cpu, std::array{"linalg_matrix_sqrth"sv},
            std::array{op_rule{"cholesky"sv, full}, op_rule{"qr"sv, full}});
inline constexpr auto pytorch_mps_2_5 =
    revised(pytorch_mps, std::array{"conv3d"sv, "conv_transpose3d"sv, "scaled_dot_product_attention"sv});

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

namespace mp::autocast::presets {

/// torch.autocast on CUDA, whose default is float16, and on the CPU, whose default is bfloat16.
inline constexpr preset pytorch_cuda{"pytorch_cuda", precision::fp16, &lists::pytorch_cuda, true,
                                     "torch.autocast(\"cuda\")"};
inline constexpr preset pytorch_cuda_bfloat16{"pytorch_cuda_bfloat16", precision::bf16, &lists::pytorch_cuda,
                                              true, "torch.autocast(\"cuda\", dtype=torch.bfloat16)"};
inline constexpr preset pytorch_cpu{"pytorch_cpu", precision::bf16, &lists::pytorch_cpu, true,
                                    "torch.autocast(\"cpu\")"};

}  // namespace mp::autocast::presets
