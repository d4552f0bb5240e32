// SPDX-License-Identifier: MIT
/// \file
/// The op lists of the graph rewrite of TensorFlow, and presets with them.
#pragma once

#include <mp/frontends/compat/op_words.hpp>
#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>

#include <array>

namespace mp::autocast::lists {
namespace rules {

/// Calls EACH(name, word in float16, word in bfloat16) for every rule, or OP(name, word) where both are the same.
// clang-format off
#define MP_TENSORFLOW_OPS(OP, EACH) \
    OP(Abs, keep) OP(Add, widest) OP(AddN, widest) OP(AddV2, widest) OP(ArgMax, keep) OP(ArgMin, keep) \
    OP(AvgPool, widest) OP(AvgPool3D, widest) OP(AvgPool3DGrad, widest) OP(AvgPoolGrad, widest) \
    OP(BatchMatMul, low) OP(BatchMatMulV2, low) OP(BatchToSpace, keep) OP(BatchToSpaceND, keep) \
    OP(BiasAdd, widest) OP(BiasAddGrad, widest) OP(BiasAddV1, widest) EACH(BlockLSTM, low, none) \
    EACH(BlockLSTMGrad, low, none) EACH(BlockLSTMGradV2, low, none) EACH(BlockLSTMV2, low, none) \
    OP(BroadcastTo, keep) OP(Ceil, keep) OP(CheckNumerics, keep) OP(ClipByValue, keep) OP(Concat, keep) \
    OP(ConcatV2, keep) OP(Conv2D, low) OP(Conv2DBackpropFilter, low) OP(Conv2DBackpropInput, low) \
    OP(Conv3D, low) EACH(Conv3DBackpropFilter, low, none) OP(Conv3DBackpropFilterV2, low) \
    EACH(Conv3DBackpropInput, low, none) OP(Conv3DBackpropInputV2, low) EACH(CudnnRNN, low, none) \
    EACH(CudnnRNNBackprop, low, none) EACH(CudnnRNNBackpropV2, low, none) \
    EACH(CudnnRNNBackpropV3, low, none) EACH(CudnnRNNV2, low, none) EACH(CudnnRNNV3, low, none) \
    OP(DepthToSpace, keep) OP(DepthwiseConv2dNative, low) OP(DepthwiseConv2dNativeBackpropFilter, low) \
    OP(DepthwiseConv2dNativeBackpropInput, low) OP(DynamicPartition, keep) OP(DynamicStitch, keep) \
    OP(Einsum, low) OP(Elu, widest) OP(EluGrad, widest) OP(EnsureShape, keep) OP(Enter, keep) \
    OP(Equal, keep) OP(Erf, widest) OP(Erfc, widest) OP(Exit, keep) OP(Exp, full) OP(ExpandDims, keep) \
    OP(Expm1, full) EACH(FastUnsortedSegmentMax, low, none) OP(Fill, keep) OP(Floor, keep) \
    OP(FloorDiv, widest) OP(FusedBatchNormGradV2, widest) OP(FusedBatchNormGradV3, widest) \
    OP(FusedBatchNormV2, widest) OP(FusedBatchNormV3, widest) EACH(FusedConv2DBiasActivation, low, none) \
    EACH(FusedPadConv2D, none, low) EACH(FusedSparseConvGpuV2, low, none) EACH(GRUBlockCell, low, none) \
    EACH(GRUBlockCellGrad, low, none) OP(Gather, keep) OP(GatherNd, keep) OP(GatherV2, keep) \
    OP(Greater, keep) OP(GreaterEqual, keep) OP(Identity, keep) OP(IdentityN, keep) OP(Inv, widest) \
    OP(IsFinite, keep) OP(IsInf, keep) OP(IsNan, keep) OP(L2Loss, full) EACH(LSTMBlockCell, low, none) \
    EACH(LSTMBlockCellGrad, low, none) OP(LeakyRelu, widest) OP(LeakyReluGrad, widest) OP(Less, keep) \
    OP(LessEqual, keep) OP(Log, widest) OP(Log1p, widest) OP(LogSoftmax, widest) OP(MatMul, low) \
    OP(Max, keep) OP(MaxPool, keep) OP(MaxPool3D, keep) OP(MaxPool3DGrad, keep) \
    EACH(MaxPool3DGradGrad, keep, none) OP(MaxPoolGrad, keep) OP(MaxPoolGradGrad, keep) \
    OP(MaxPoolGradGradV2, keep) OP(MaxPoolGradV2, keep) OP(MaxPoolV2, keep) OP(Maximum, keep) \
    EACH(Mean, full, widest) OP(Merge, keep) EACH(Mha, low, none) EACH(MhaV2, low, none) OP(Min, keep) \
    OP(Minimum, keep) OP(MirrorPad, keep) OP(MirrorPadGrad, keep) OP(Mul, widest) OP(Neg, keep) \
    OP(NextIteration, keep) OP(NotEqual, keep) EACH(OneHot, keep, none) OP(OnesLike, keep) OP(Pack, keep) \
    OP(Pad, keep) OP(PadV2, keep) EACH(Pmlp, low, none) OP(Pow, full) OP(PreventGradient, keep) \
    OP(Prod, widest) OP(Rank, keep) OP(RealDiv, widest) OP(Reciprocal, widest) OP(Relu, keep) \
    OP(Relu6, keep) OP(Relu6Grad, keep) OP(ReluGrad, keep) OP(Reshape, keep) \
    EACH(ResizeBilinear, none, keep) OP(ResizeNearestNeighbor, keep) OP(ResizeNearestNeighborGrad, keep) \
    OP(Reverse, keep) OP(ReverseSequence, keep) OP(ReverseV2, keep) OP(Round, keep) \
    EACH(Rsqrt, none, widest) OP(SaveV2, full) EACH(ScatterNd, none, keep) OP(Select, keep) \
    OP(SelectV2, keep) OP(Selu, widest) OP(SeluGrad, widest) OP(Shape, keep) OP(ShapeN, keep) \
    OP(Sigmoid, widest) OP(SigmoidGrad, widest) OP(Sign, keep) EACH(Size, keep, none) OP(Slice, keep) \
    OP(Snapshot, keep) OP(Softmax, widest) OP(SoftmaxCrossEntropyWithLogits, full) OP(Softplus, widest) \
    OP(SoftplusGrad, widest) OP(Softsign, widest) OP(SoftsignGrad, widest) OP(SpaceToBatch, keep) \
    OP(SpaceToBatchND, keep) OP(SpaceToDepth, keep) OP(SparseSoftmaxCrossEntropyWithLogits, full) \
    OP(Split, keep) OP(SplitV, keep) OP(Sqrt, widest) EACH(Square, none, widest) \
    EACH(SquaredDifference, none, widest) OP(Squeeze, keep) EACH(StatelessWhile, none, keep) \
    OP(StopGradient, keep) OP(StridedSlice, keep) OP(StridedSliceGrad, keep) OP(Sub, widest) \
    EACH(Sum, full, widest) OP(Switch, keep) OP(Tanh, widest) OP(TanhGrad, widest) \
    OP(TensorListConcat, keep) OP(TensorListConcatLists, keep) OP(TensorListConcatV2, keep) \
    OP(TensorListFromTensor, keep) OP(TensorListGather, keep) OP(TensorListGetItem, keep) \
    OP(TensorListPopBack, keep) OP(TensorListPushBack, keep) OP(TensorListPushBackBatch, keep) \
    OP(TensorListScatter, keep) OP(TensorListScatterIntoExistingList, keep) OP(TensorListScatterV2, keep) \
    OP(TensorListSetItem, keep) OP(TensorListSplit, keep) OP(TensorListStack, keep) OP(Tile, keep) \
    EACH(Tmlp, low, none) EACH(TmlpV2, low, none) EACH(TmlpV3, low, none) OP(TopK, keep) OP(TopKV2, keep) \
    OP(Transpose, keep) OP(Unpack, keep) EACH(VoxelMax, low, none) OP(Where, keep) EACH(While, none, keep) \
    OP(ZerosLike, keep) OP(_FusedBatchNormEx, widest)
// clang-format on

#define MP_OP(name, word) MP_OP_##word(#name)
#define MP_EACH(name, float16, bfloat16) MP_OP_##float16(#name)
inline constexpr op_rule tensorflow[] = {MP_TENSORFLOW_OPS(MP_OP, MP_EACH)};
#undef MP_EACH
#define MP_EACH(name, float16, bfloat16) MP_OP_##bfloat16(#name)
inline constexpr op_rule tensorflow_bfloat16[] = {MP_TENSORFLOW_OPS(MP_OP, MP_EACH)};
#undef MP_EACH
#undef MP_OP
#undef MP_TENSORFLOW_OPS

inline constexpr auto tensorflow_2_18 = revised(tensorflow, std::array{"VoxelMax"sv});

}  // namespace rules

/// What TensorFlow's rewrite for automatic mixed precision does with the ops of a graph in float16 on CUDA
/// devices. The names allow, infer, deny and clear of its lists are those of op_category. TensorFlow looks at
/// the whole graph: an infer or clear op takes the precision of its neighbours. promote_widest and
/// pass_through are what can be said without a graph. An op that no list names keeps its own type, which is
/// float in such a graph: full_precision.
///
/// Source: tensorflow/tensorflow, tensorflow/core/grappler/optimizers/auto_mixed_precision_lists.h, class
/// AutoMixedPrecisionListsFp16 of version 2.21 in mode CUDA, which was called AutoMixedPrecisionListsCuda
/// in earlier versions, as it is with CUDA 9.1 and cuDNN 8.0 or later; earlier versions of them lack
/// BatchMatMul*, Conv3D* and Depthwise*.
inline constexpr op_list tensorflow{"tensorflow", rules::tensorflow, op_category::full_precision, "2.21"};

/// The same in version 2.18.1.
inline constexpr op_list tensorflow_2_18{"tensorflow", rules::tensorflow_2_18, op_category::full_precision,
                                         "2.18"};

/// The same for bfloat16 with oneDNN on the CPU. The range of bfloat16 moves Mean and Sum from deny to infer;
/// Exp and Pow stay. Rarer ops are missing where oneDNN has no kernel for them.
///
/// Source: class AutoMixedPrecisionListsMkl in the same file. Earlier it denied Mean and Sum as well, as
/// at commit e1c1b29704c7.
inline constexpr op_list tensorflow_bfloat16{"tensorflow_bfloat16", rules::tensorflow_bfloat16,
                                             op_category::full_precision, "2.18"};

}  // namespace mp::autocast::lists

namespace mp::autocast::presets {

/// TensorFlow's graph rewrite, as far as a single op can tell: an op in `infer` takes the widest type of its
/// arguments. <mp/frontends/compat/tensorflow/graph_rewrite.hpp> colours a whole graph.
inline constexpr preset tensorflow{"tensorflow", precision::fp16, &lists::tensorflow, true,
                                   "TensorFlow's auto_mixed_precision, without its graph"};
inline constexpr preset tensorflow_bfloat16{"tensorflow_bfloat16", precision::bf16,
                                            &lists::tensorflow_bfloat16, true,
                                            "TensorFlow's auto_mixed_precision_onednn_bfloat16"};

}  // namespace mp::autocast::presets
