// SPDX-License-Identifier: MIT
/// \file
/// The op lists of Apache MXNet, and its ways to run a model in mixed precision as presets.
#pragma once

#include <mp/frontends/compat/op_words.hpp>
#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

#include <array>
#include <string_view>

namespace mp::autocast::lists {
namespace rules {

/// Calls EACH(name, word in float16, word in bfloat16) for every rule, or OP(name, word in float16) where the word in
/// bfloat16 is full.
// clang-format off
#define MP_MXNET_OPS(OP, EACH) \
    EACH(Activation, softrelu, keep) EACH(BatchNorm, keep, keep) OP(BilinearSampler, keep) \
    OP(BlockGrad, keep) OP(CTCLoss, full) EACH(Cast, keep, keep) EACH(Concat, widest, widest) \
    EACH(Convolution, low, low) OP(Correlation, widest) OP(Crop, keep) OP(Custom, full) \
    EACH(Deconvolution, low, low) OP(Dropout, keep) OP(Embedding, keep) EACH(Flatten, keep, keep) \
    EACH(FullyConnected, low, low) OP(GridGenerator, keep) OP(GroupNorm, full) \
    OP(IdentityAttachKLSparseReg, full) OP(InstanceNorm, full) OP(L2Normalization, full) \
    EACH(LRN, full, keep) EACH(LayerNorm, full, keep) EACH(LeakyReLU, elu, none) EACH(LeakyReLU, selu, selu) \
    OP(LinearRegressionOutput, full) OP(LogisticRegressionOutput, full) OP(MAERegressionOutput, full) \
    OP(MakeLoss, full) OP(Pad, keep) EACH(Pooling, keep, keep) OP(RNN, low) OP(ROIPooling, keep) \
    EACH(Reshape, keep, keep) OP(SVMOutput, full) OP(SequenceLast, keep) OP(SequenceMask, keep) \
    OP(SequenceReverse, keep) OP(SliceChannel, keep) OP(SoftmaxActivation, full) OP(SoftmaxOutput, full) \
    OP(SpatialTransformer, keep) OP(SwapAxis, keep) OP(UpSampling, keep) OP(_CachedOp, keep) \
    OP(_CachedOpThreadSafe, keep) OP(_CrossDeviceCopy, keep) OP(_CustomFunction, keep) \
    EACH(_FusedOp, keep, none) EACH(_FusedOpHelper, keep, none) EACH(_FusedOpOutHelper, keep, none) \
    OP(_NDArray, full) OP(_Native, full) OP(_NoGradient, keep) OP(_adabelief_update, keep) \
    OP(_adamw_update, keep) OP(_arange, keep) OP(_cond, keep) \
    EACH(_contrib_AdaptiveAvgPooling2D, keep, keep) OP(_contrib_BilinearResize2D, keep) \
    OP(_contrib_DeformablePSROIPooling, full) OP(_contrib_MultiBoxDetection, full) \
    OP(_contrib_MultiBoxPrior, full) OP(_contrib_MultiBoxTarget, full) OP(_contrib_MultiProposal, widest) \
    OP(_contrib_PSROIPooling, widest) OP(_contrib_Proposal, widest) OP(_contrib_ROIAlign, widest) \
    OP(_contrib_RROIAlign, widest) OP(_contrib_SyncBatchNorm, full) OP(_contrib_allclose, keep) \
    OP(_contrib_arange_like, keep) OP(_contrib_bipartite_matching, keep) OP(_contrib_boolean_mask, keep) \
    OP(_contrib_box_decode, widest) OP(_contrib_box_encode, widest) OP(_contrib_box_iou, widest) \
    OP(_contrib_box_nms, widest) OP(_contrib_calibrate_entropy, full) OP(_contrib_count_sketch, full) \
    OP(_contrib_dequantize, keep) OP(_contrib_dgl_adjacency, widest) \
    OP(_contrib_dgl_csr_neighbor_non_uniform_sample, widest) \
    OP(_contrib_dgl_csr_neighbor_uniform_sample, widest) OP(_contrib_dgl_graph_compact, widest) \
    OP(_contrib_dgl_subgraph, widest) OP(_contrib_div_sqrt_dim, keep) OP(_contrib_dynamic_reshape, keep) \
    OP(_contrib_edge_id, widest) OP(_contrib_fft, full) OP(_contrib_getnnz, keep) \
    OP(_contrib_gradientmultiplier, keep) OP(_contrib_group_adagrad_update, keep) \
    OP(_contrib_hawkesll, full) OP(_contrib_index_array, keep) OP(_contrib_index_copy, keep) \
    OP(_contrib_interleaved_matmul_encdec_qk, widest) OP(_contrib_interleaved_matmul_encdec_valatt, widest) \
    OP(_contrib_interleaved_matmul_selfatt_qk, widest) \
    OP(_contrib_interleaved_matmul_selfatt_valatt, widest) OP(_contrib_intgemm_fully_connected, keep) \
    OP(_contrib_intgemm_maxabsolute, keep) OP(_contrib_intgemm_prepare_data, keep) \
    OP(_contrib_intgemm_prepare_weight, keep) OP(_contrib_intgemm_take_weight, keep) \
    EACH(_contrib_mrcnn_mask_target, keep, none) OP(_contrib_quadratic, keep) OP(_contrib_quantize, keep) \
    OP(_contrib_quantize_asym, keep) EACH(_contrib_quantize_v2, keep, keep) OP(_contrib_quantized_act, keep) \
    OP(_contrib_quantized_batch_norm, keep) OP(_contrib_quantized_batch_norm_relu, keep) \
    OP(_contrib_quantized_concat, keep) OP(_contrib_quantized_conv, keep) \
    OP(_contrib_quantized_elemwise_add, keep) OP(_contrib_quantized_elemwise_mul, keep) \
    OP(_contrib_quantized_embedding, keep) OP(_contrib_quantized_flatten, keep) \
    OP(_contrib_quantized_fully_connected, keep) OP(_contrib_quantized_pooling, keep) \
    OP(_contrib_quantized_reshape, keep) OP(_contrib_quantized_rnn, keep) \
    OP(_contrib_quantized_transpose, keep) OP(_contrib_requantize, keep) OP(_contrib_round_ste, keep) \
    OP(_contrib_sign_ste, keep) OP(_contrib_sldwin_atten_context, full) \
    OP(_contrib_sldwin_atten_mask_like, full) OP(_contrib_sldwin_atten_score, full) EACH(_copy, keep, keep) \
    OP(_copyto, keep) OP(_cvcopyMakeBorder, keep) OP(_cvimdecode, keep) OP(_cvimread, keep) \
    OP(_cvimresize, keep) OP(_div_scalar, keep) OP(_equal, widest) OP(_equal_scalar, keep) OP(_eye, keep) \
    OP(_foreach, keep) OP(_full, keep) OP(_grad_add, keep) OP(_greater, widest) OP(_greater_equal, widest) \
    OP(_greater_equal_scalar, keep) OP(_greater_scalar, keep) OP(_histogram, keep) OP(_hypot, widest) \
    OP(_hypot_scalar, keep) OP(_identity_with_attr_like_rhs, keep) OP(_image_adjust_lighting, keep) \
    OP(_image_crop, keep) OP(_image_flip_left_right, keep) OP(_image_flip_top_bottom, keep) \
    OP(_image_normalize, keep) OP(_image_random_brightness, keep) OP(_image_random_color_jitter, keep) \
    OP(_image_random_contrast, keep) OP(_image_random_crop, keep) OP(_image_random_flip_left_right, keep) \
    OP(_image_random_flip_top_bottom, keep) OP(_image_random_hue, keep) OP(_image_random_lighting, keep) \
    OP(_image_random_resized_crop, keep) OP(_image_random_saturation, keep) OP(_image_resize, keep) \
    OP(_image_to_tensor, keep) OP(_imdecode, keep) OP(_lesser, widest) OP(_lesser_equal, widest) \
    OP(_lesser_equal_scalar, keep) OP(_lesser_scalar, keep) OP(_linalg_det, full) \
    OP(_linalg_extractdiag, full) OP(_linalg_extracttrian, full) OP(_linalg_gelqf, full) \
    OP(_linalg_gemm, low) OP(_linalg_gemm2, low) OP(_linalg_inverse, full) OP(_linalg_makediag, full) \
    OP(_linalg_maketrian, full) OP(_linalg_potrf, full) OP(_linalg_potri, full) OP(_linalg_slogdet, full) \
    OP(_linalg_sumlogdiag, full) OP(_linalg_syevd, full) OP(_linalg_syrk, full) OP(_linalg_trmm, full) \
    OP(_linalg_trsm, full) OP(_linspace, keep) OP(_logical_and, widest) OP(_logical_and_scalar, keep) \
    OP(_logical_or, widest) OP(_logical_or_scalar, keep) OP(_logical_xor, widest) \
    OP(_logical_xor_scalar, keep) OP(_maximum, widest) OP(_maximum_scalar, keep) OP(_minimum, widest) \
    OP(_minimum_scalar, keep) OP(_minus_scalar, keep) OP(_mod, widest) OP(_mod_scalar, keep) \
    OP(_mp_adabelief_update, keep) OP(_mp_adamw_update, keep) OP(_mul_scalar, keep) \
    OP(_multi_adabelief_update, keep) OP(_multi_adamw_update, keep) OP(_multi_lamb_update, keep) \
    OP(_multi_lans_update, keep) OP(_multi_mp_adabelief_update, keep) OP(_multi_mp_adamw_update, keep) \
    OP(_multi_mp_lamb_update, keep) OP(_multi_mp_lans_update, keep) OP(_not_equal, widest) \
    OP(_not_equal_scalar, keep) OP(_np_reshape, keep) OP(_npi_absolute, keep) EACH(_npi_add, keep, widest) \
    OP(_npi_add_scalar, keep) OP(_npi_advanced_indexing, keep) OP(_npi_advanced_indexing_multiple, keep) \
    OP(_npi_all, keep) OP(_npi_any, keep) OP(_npi_arange, keep) OP(_npi_arccos, full) OP(_npi_arccosh, keep) \
    OP(_npi_arcsin, full) OP(_npi_arcsinh, keep) OP(_npi_arctan, keep) OP(_npi_arctan2, keep) \
    OP(_npi_arctan2_scalar, keep) OP(_npi_arctanh, full) OP(_npi_argmax, keep) OP(_npi_argmin, keep) \
    OP(_npi_around, keep) OP(_npi_atleast_1d, keep) OP(_npi_atleast_2d, keep) OP(_npi_atleast_3d, keep) \
    OP(_npi_average, full) OP(_npi_bernoulli, keep) OP(_npi_bincount, keep) OP(_npi_bitwise_and, keep) \
    OP(_npi_bitwise_and_scalar, keep) OP(_npi_bitwise_left_shift, keep) \
    OP(_npi_bitwise_left_shift_scalar, keep) OP(_npi_bitwise_not, keep) OP(_npi_bitwise_or, keep) \
    OP(_npi_bitwise_or_scalar, keep) OP(_npi_bitwise_right_shift, keep) \
    OP(_npi_bitwise_right_shift_scalar, keep) OP(_npi_bitwise_xor, keep) OP(_npi_bitwise_xor_scalar, keep) \
    OP(_npi_blackman, keep) OP(_npi_boolean_mask_assign_scalar, keep) \
    OP(_npi_boolean_mask_assign_tensor, keep) OP(_npi_broadcast_to, keep) OP(_npi_cbrt, keep) \
    OP(_npi_ceil, keep) OP(_npi_choice, keep) OP(_npi_cholesky, full) OP(_npi_column_stack, widest) \
    OP(_npi_copy, keep) OP(_npi_copysign, widest) OP(_npi_copysign_scalar, keep) OP(_npi_cos, keep) \
    OP(_npi_cosh, full) OP(_npi_cross, widest) OP(_npi_cumsum, full) OP(_npi_degrees, keep) \
    OP(_npi_delete, keep) OP(_npi_diag, keep) OP(_npi_diag_indices_from, keep) OP(_npi_diagflat, keep) \
    OP(_npi_diagonal, keep) OP(_npi_diff, keep) EACH(_npi_dot, widest, widest) OP(_npi_dsplit, keep) \
    OP(_npi_dstack, widest) OP(_npi_ediff1d, widest) OP(_npi_eig, full) OP(_npi_eigh, full) \
    OP(_npi_eigvals, full) OP(_npi_eigvalsh, full) OP(_npi_einsum, low) OP(_npi_equal, widest) \
    OP(_npi_equal_scalar, keep) EACH(_npi_exp, full, keep) OP(_npi_expm1, full) OP(_npi_exponential, keep) \
    OP(_npi_eye, keep) OP(_npi_fill_diagonal, keep) OP(_npi_fix, keep) OP(_npi_flip, keep) \
    OP(_npi_floor, keep) OP(_npi_floor_divide, keep) OP(_npi_floor_divide_scalar, keep) \
    OP(_npi_fmax, widest) OP(_npi_fmax_scalar, keep) OP(_npi_fmin, widest) OP(_npi_fmin_scalar, keep) \
    OP(_npi_fmod, widest) OP(_npi_fmod_scalar, keep) OP(_npi_full, keep) OP(_npi_full_like, keep) \
    OP(_npi_gamma, keep) OP(_npi_gcd, keep) OP(_npi_gcd_scalar, keep) OP(_npi_greater, widest) \
    OP(_npi_greater_equal, widest) OP(_npi_greater_equal_scalar, keep) OP(_npi_greater_scalar, keep) \
    OP(_npi_gumbel, keep) OP(_npi_hamming, keep) OP(_npi_hanning, keep) OP(_npi_hsplit, keep) \
    OP(_npi_hstack, widest) OP(_npi_hypot, widest) OP(_npi_identity, keep) OP(_npi_indices, keep) \
    OP(_npi_insert_scalar, keep) OP(_npi_insert_slice, keep) OP(_npi_insert_tensor, keep) \
    OP(_npi_interp, keep) OP(_npi_isfinite, keep) OP(_npi_isinf, keep) OP(_npi_isnan, keep) \
    OP(_npi_isneginf, keep) OP(_npi_isposinf, keep) OP(_npi_kron, widest) OP(_npi_laplace, keep) \
    OP(_npi_lcm, keep) OP(_npi_lcm_scalar, keep) OP(_npi_ldexp, full) OP(_npi_ldexp_scalar, full) \
    OP(_npi_less, widest) OP(_npi_less_equal, widest) OP(_npi_less_equal_scalar, keep) \
    OP(_npi_less_scalar, keep) OP(_npi_linspace, keep) OP(_npi_log, full) OP(_npi_log10, full) \
    OP(_npi_log1p, full) OP(_npi_log2, full) OP(_npi_logaddexp, full) OP(_npi_logaddexp_scalar, full) \
    OP(_npi_logical_and, widest) OP(_npi_logical_and_scalar, keep) OP(_npi_logical_not, keep) \
    OP(_npi_logical_or, widest) OP(_npi_logical_or_scalar, keep) OP(_npi_logical_xor, widest) \
    OP(_npi_logical_xor_scalar, keep) OP(_npi_logistic, keep) OP(_npi_logspace, keep) OP(_npi_lstsq, full) \
    OP(_npi_matmul, low) OP(_npi_matrix_rank, full) OP(_npi_matrix_rank_none_tol, full) OP(_npi_max, keep) \
    EACH(_npi_mean, full, keep) OP(_npi_min, keep) OP(_npi_mod, keep) OP(_npi_mod_scalar, keep) \
    OP(_npi_moveaxis, keep) OP(_npi_multinomial, keep) EACH(_npi_multiply, keep, widest) \
    OP(_npi_multiply_scalar, keep) OP(_npi_nan_to_num, keep) OP(_npi_negative, keep) OP(_npi_norm, full) \
    OP(_npi_normal, keep) OP(_npi_normal_n, keep) OP(_npi_not_equal, widest) OP(_npi_not_equal_scalar, keep) \
    OP(_npi_ones, keep) OP(_npi_pad, keep) OP(_npi_pareto, keep) OP(_npi_percentile, keep) \
    OP(_npi_pinv, full) OP(_npi_pinv_scalar_rcond, full) OP(_npi_polyval, full) OP(_npi_power, full) \
    OP(_npi_power_scalar, full) OP(_npi_powerd, keep) OP(_npi_prod, full) OP(_npi_qr, full) \
    OP(_npi_radians, keep) OP(_npi_rarctan2_scalar, keep) OP(_npi_rayleigh, keep) \
    OP(_npi_rbitwise_left_shift_scalar, keep) OP(_npi_rbitwise_right_shift_scalar, keep) \
    OP(_npi_rcopysign_scalar, keep) OP(_npi_reciprocal, full) OP(_npi_repeats, keep) \
    OP(_npi_rfloor_divide_scalar, keep) OP(_npi_rfmod_scalar, keep) OP(_npi_rint, keep) \
    OP(_npi_rldexp_scalar, full) OP(_npi_rmod_scalar, keep) OP(_npi_roll, keep) OP(_npi_rollaxis, keep) \
    OP(_npi_rot90, keep) OP(_npi_rpower_scalar, full) OP(_npi_rsubtract_scalar, keep) \
    OP(_npi_rtrue_divide_scalar, keep) OP(_npi_share_memory, keep) OP(_npi_sign, keep) OP(_npi_sin, keep) \
    OP(_npi_sinh, full) OP(_npi_solve, full) EACH(_npi_sqrt, keep, keep) EACH(_npi_square, full, keep) \
    OP(_npi_squeeze, keep) OP(_npi_std, full) EACH(_npi_subtract, keep, widest) \
    OP(_npi_subtract_scalar, keep) EACH(_npi_sum, full, keep) OP(_npi_svd, full) OP(_npi_tan, full) \
    EACH(_npi_tanh, keep, keep) OP(_npi_tensordot, widest) OP(_npi_tensordot_int_axes, widest) \
    OP(_npi_tensorinv, full) OP(_npi_tensorsolve, full) OP(_npi_trace, full) \
    EACH(_npi_transpose, keep, keep) OP(_npi_tri, keep) OP(_npi_tril, keep) OP(_npi_tril_indices, keep) \
    OP(_npi_triu, keep) EACH(_npi_true_divide, keep, widest) OP(_npi_true_divide_scalar, keep) \
    OP(_npi_trunc, keep) OP(_npi_uniform, keep) OP(_npi_uniform_n, keep) OP(_npi_unique, keep) \
    OP(_npi_var, full) OP(_npi_vstack, widest) OP(_npi_weibull, keep) EACH(_npi_where, widest, keep) \
    OP(_npi_where_lscalar, keep) OP(_npi_where_rscalar, keep) OP(_npi_where_scalar2, keep) \
    OP(_npi_zeros, keep) OP(_npx_cond, keep) OP(_npx_constraint_check, keep) \
    OP(_npx_deformable_convolution, full) OP(_npx_foreach, keep) OP(_npx_index_add, widest) \
    OP(_npx_index_update, widest) OP(_npx_modulated_deformable_convolution, full) OP(_npx_nonzero, keep) \
    OP(_npx_quantized_reshape, keep) OP(_npx_quantized_transpose, keep) OP(_npx_relu, keep) \
    EACH(_npx_reshape, keep, keep) OP(_npx_sigmoid, keep) OP(_npx_while_loop, keep) OP(_onehot_encode, keep) \
    OP(_ones, keep) OP(_plus_scalar, keep) OP(_power, full) OP(_power_scalar, full) \
    OP(_random_binomial, keep) EACH(_random_binomial_like, keep, none) OP(_random_exponential, keep) \
    OP(_random_exponential_like, keep) OP(_random_gamma, keep) OP(_random_gamma_like, keep) \
    OP(_random_generalized_negative_binomial, keep) OP(_random_generalized_negative_binomial_like, keep) \
    OP(_random_negative_binomial, keep) OP(_random_negative_binomial_like, keep) OP(_random_normal, keep) \
    OP(_random_normal_like, keep) OP(_random_pdf_dirichlet, widest) OP(_random_pdf_exponential, widest) \
    OP(_random_pdf_gamma, widest) OP(_random_pdf_generalized_negative_binomial, widest) \
    OP(_random_pdf_negative_binomial, widest) OP(_random_pdf_normal, widest) OP(_random_pdf_poisson, widest) \
    OP(_random_pdf_uniform, widest) OP(_random_poisson, keep) OP(_random_poisson_like, keep) \
    OP(_random_randint, keep) OP(_random_uniform, keep) OP(_random_uniform_like, keep) \
    OP(_ravel_multi_index, keep) OP(_rdiv_scalar, full) OP(_rminus_scalar, keep) OP(_rmod_scalar, keep) \
    OP(_rnn_param_concat, keep) OP(_rpower_scalar, full) OP(_sample_binomial, keep) \
    OP(_sample_categorical, keep) OP(_sample_exponential, keep) OP(_sample_gamma, keep) \
    OP(_sample_generalized_negative_binomial, keep) OP(_sample_multinomial, keep) \
    OP(_sample_negative_binomial, keep) OP(_sample_normal, keep) OP(_sample_poisson, keep) \
    OP(_sample_uniform, keep) OP(_sample_unique_zipfian, keep) OP(_scatter_set_nd, keep) \
    OP(_set_value, keep) EACH(_sg_onednn_batch_dot, full, widest) EACH(_sg_onednn_batch_norm, full, widest) \
    EACH(_sg_onednn_conv, full, low) EACH(_sg_onednn_fully_connected, full, low) \
    EACH(_sg_onednn_selfatt_qk, full, low) EACH(_sg_onednn_selfatt_qk_split, full, low) \
    EACH(_sg_onednn_selfatt_valatt, full, low) EACH(_sg_pow_mul_scalar, full, none) OP(_shuffle, keep) \
    OP(_slice_assign, keep) OP(_slice_assign_scalar, keep) OP(_sparse_adagrad_update, keep) \
    OP(_sparse_retain, keep) EACH(_split_v2, keep, keep) OP(_square_sum, full) OP(_unravel_index, keep) \
    OP(_while_loop, keep) OP(_zeros, keep) OP(_zeros_without_dtype, keep) OP(abs, keep) \
    OP(adam_update, keep) EACH(add_n, widest, widest) OP(all_finite, keep) OP(amp_cast, keep) \
    OP(amp_multicast, keep) OP(arccos, full) OP(arccosh, keep) OP(arcsin, full) OP(arcsinh, keep) \
    OP(arctan, keep) OP(arctanh, full) OP(argmax, keep) OP(argmax_channel, keep) OP(argmin, keep) \
    OP(argsort, full) EACH(batch_dot, widest, widest) OP(batch_take, keep) \
    EACH(broadcast_add, widest, widest) OP(broadcast_axis, keep) EACH(broadcast_div, widest, widest) \
    OP(broadcast_equal, widest) OP(broadcast_greater, widest) OP(broadcast_greater_equal, widest) \
    OP(broadcast_hypot, widest) OP(broadcast_lesser, widest) OP(broadcast_lesser_equal, widest) \
    OP(broadcast_like, keep) OP(broadcast_logical_and, widest) OP(broadcast_logical_or, widest) \
    OP(broadcast_logical_xor, widest) OP(broadcast_maximum, widest) OP(broadcast_minimum, widest) \
    OP(broadcast_mod, widest) EACH(broadcast_mul, widest, widest) OP(broadcast_not_equal, widest) \
    OP(broadcast_power, full) EACH(broadcast_sub, widest, widest) OP(broadcast_to, keep) \
    OP(cast_storage, keep) OP(cbrt, keep) OP(ceil, keep) OP(clip, keep) OP(col2im, keep) OP(cos, keep) \
    OP(cosh, full) OP(degrees, keep) OP(depth_to_space, keep) OP(diag, keep) OP(digamma, full) \
    EACH(dot, widest, widest) EACH(elemwise_add, widest, widest) OP(elemwise_div, widest) \
    OP(elemwise_mul, widest) OP(elemwise_sub, widest) OP(erf, keep) OP(erfinv, full) OP(exp, full) \
    EACH(expand_dims, keep, keep) OP(expm1, full) OP(fill_element_0index, keep) OP(fix, keep) \
    OP(floor, keep) OP(ftml_update, keep) OP(ftrl_update, keep) OP(gamma, full) OP(gammaln, full) \
    OP(gather_nd, keep) OP(hard_sigmoid, keep) OP(im2col, keep) OP(khatri_rao, full) \
    OP(lamb_update_phase1, keep) OP(lamb_update_phase2, keep) OP(log, full) OP(log10, full) OP(log1p, full) \
    OP(log2, full) OP(log_sigmoid, keep) EACH(log_softmax, full, keep) OP(logical_not, keep) \
    OP(make_loss, full) OP(masked_log_softmax, full) OP(masked_softmax, full) OP(max, keep) \
    EACH(mean, full, keep) OP(min, keep) OP(mish, keep) OP(moments, full) OP(mp_lamb_update_phase1, keep) \
    OP(mp_lamb_update_phase2, keep) OP(mp_nag_mom_update, keep) OP(mp_sgd_mom_update, keep) \
    OP(mp_sgd_update, keep) OP(multi_all_finite, keep) OP(multi_lars, keep) \
    OP(multi_mp_sgd_mom_update, keep) OP(multi_mp_sgd_update, keep) OP(multi_sgd_mom_update, keep) \
    OP(multi_sgd_update, keep) OP(multi_sum_sq, keep) OP(nag_mom_update, keep) OP(nanprod, full) \
    OP(nansum, full) OP(negative, keep) OP(norm, full) OP(one_hot, keep) OP(ones_like, keep) OP(pick, keep) \
    OP(preloaded_multi_mp_sgd_mom_update, keep) OP(preloaded_multi_mp_sgd_update, keep) \
    OP(preloaded_multi_sgd_mom_update, keep) OP(preloaded_multi_sgd_update, keep) OP(prod, full) \
    OP(radians, keep) OP(rcbrt, full) OP(reciprocal, full) OP(relu, keep) OP(repeat, keep) \
    OP(reset_arrays, keep) OP(reshape_like, keep) OP(reverse, keep) OP(rint, keep) OP(rmsprop_update, keep) \
    OP(rmspropalex_update, keep) OP(round, keep) OP(rsqrt, full) OP(scatter_nd, keep) \
    OP(sgd_mom_update, keep) OP(sgd_update, keep) OP(shape_array, keep) OP(sigmoid, keep) OP(sign, keep) \
    OP(signsgd_update, keep) OP(signum_update, keep) OP(sin, keep) OP(sinh, full) OP(size_array, keep) \
    EACH(slice, keep, keep) OP(slice_axis, keep) OP(slice_like, keep) OP(smooth_l1, full) \
    EACH(softmax, full, keep) OP(softmax_cross_entropy, full) OP(softmin, full) OP(softsign, keep) \
    OP(sort, keep) EACH(space_to_depth, keep, keep) OP(sqrt, keep) OP(square, full) OP(squeeze, keep) \
    EACH(stack, widest, keep) EACH(sum, full, keep) EACH(take, keep, keep) OP(tan, full) OP(tanh, keep) \
    OP(tile, keep) OP(topk, full) EACH(transpose, keep, keep) OP(trunc, keep) EACH(where, widest, keep) \
    OP(zeros_like, keep)
// clang-format on

#define MP_OP(name, float16) MP_OP_##float16(#name)
#define MP_EACH(name, float16, bfloat16) MP_OP_##float16(#name)
inline constexpr op_rule mxnet[] = {MP_MXNET_OPS(MP_OP, MP_EACH)};
#undef MP_EACH
#undef MP_OP

#define MP_OP(name, float16) MP_OP_full(#name)
#define MP_EACH(name, float16, bfloat16) MP_OP_##bfloat16(#name)
inline constexpr op_rule mxnet_bfloat16[] = {MP_MXNET_OPS(MP_OP, MP_EACH)};
#undef MP_EACH
#undef MP_OP
#undef MP_MXNET_OPS

}  // namespace rules

/// What MXNet amp does with operators in float16. FP16_FUNCS are lower_precision, FP16_FP32_FUNCS
/// pass_through, FP32_FUNCS full_precision, WIDEST_TYPE_CASTS promote_widest. CONDITIONAL_FP32_FUNCS are
/// rules with a condition: Activation and LeakyReLU run in float for some values of act_type, and else in the
/// types of their arguments.
///
/// Source: apache/mxnet, python/mxnet/amp/lists/symbol_fp16.py at commit b84609d3fc73 (version 2.0.0), as it
/// is where MXNet was built with oneDNN, which adds the last eight of FP32_FUNCS.
inline constexpr op_list mxnet{"mxnet", rules::mxnet, op_category::pass_through};

/// The outputs of MXNet that hold their own loss: amp multiplies their parameter `grad_scale` by the loss
/// scale. All of them have a rule in mxnet as well. Source: LOSS_OUTPUT_FUNCTIONS in the same file.
inline constexpr std::array<std::string_view, 4> mxnet_loss_outputs{
    "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SoftmaxOutput"};

/// What MXNet amp does with operators in bfloat16: float unless the op is known to work, the opposite of what
/// it does with float16. BF16_FUNCS are lower_precision, BF16_FP32_FUNCS pass_through; see mxnet for the
/// rest.
///
/// Source: apache/mxnet, python/mxnet/amp/lists/symbol_bf16.py at commit b84609d3fc73 (version 2.0.0), as it
/// is where MXNet was built with oneDNN, which adds the names that begin with _sg_onednn_ to lower_precision
/// and promote_widest. Not expressed: the weights and statistics of BatchNorm stay float
/// (BF16_USE_FP32_PARAMS).
inline constexpr op_list mxnet_bfloat16{"mxnet_bfloat16", rules::mxnet_bfloat16, op_category::pass_through};

/// The same for mxnet_bfloat16.
inline constexpr std::array<std::string_view, 1> mxnet_bfloat16_loss_outputs{"SoftmaxOutput"};

}  // namespace mp::autocast::lists

namespace mp::autocast::presets {

inline constexpr preset mxnet{"mxnet", precision::fp16, &lists::mxnet, true, "MXNet's amp.init()"};
inline constexpr preset mxnet_bfloat16{"mxnet_bfloat16", precision::bf16, &lists::mxnet_bfloat16, true,
                                       "MXNet's amp.init(\"bfloat16\")"};

}  // namespace mp::autocast::presets
