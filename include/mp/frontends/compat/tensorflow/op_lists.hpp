// SPDX-License-Identifier: MIT
/// \file
/// The op lists of the graph rewrite of TensorFlow.
#pragma once

#include <mp/nn/autocast/list_notation.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <array>

namespace mp::autocast::lists {
namespace rules {

// clang-format off
inline constexpr op_rule tensorflow[] = {
    {"Abs"sv, keep}, {"Add"sv, widest}, {"AddN"sv, widest}, {"AddV2"sv, widest}, {"ArgMax"sv, keep},
    {"ArgMin"sv, keep}, {"AvgPool"sv, widest}, {"AvgPool3D"sv, widest}, {"AvgPool3DGrad"sv, widest},
    {"AvgPoolGrad"sv, widest}, {"BatchMatMul"sv, low}, {"BatchMatMulV2"sv, low}, {"BatchToSpace"sv, keep},
    {"BatchToSpaceND"sv, keep}, {"BiasAdd"sv, widest}, {"BiasAddGrad"sv, widest}, {"BiasAddV1"sv, widest},
    {"BlockLSTM"sv, low}, {"BlockLSTMGrad"sv, low}, {"BlockLSTMGradV2"sv, low}, {"BlockLSTMV2"sv, low},
    {"BroadcastTo"sv, keep}, {"Ceil"sv, keep}, {"CheckNumerics"sv, keep}, {"ClipByValue"sv, keep},
    {"Concat"sv, keep}, {"ConcatV2"sv, keep}, {"Conv2D"sv, low}, {"Conv2DBackpropFilter"sv, low},
    {"Conv2DBackpropInput"sv, low}, {"Conv3D"sv, low}, {"Conv3DBackpropFilter"sv, low},
    {"Conv3DBackpropFilterV2"sv, low}, {"Conv3DBackpropInput"sv, low}, {"Conv3DBackpropInputV2"sv, low},
    {"CudnnRNN"sv, low}, {"CudnnRNNBackprop"sv, low}, {"CudnnRNNBackpropV2"sv, low},
    {"CudnnRNNBackpropV3"sv, low}, {"CudnnRNNV2"sv, low}, {"CudnnRNNV3"sv, low}, {"DepthToSpace"sv, keep},
    {"DepthwiseConv2dNative"sv, low}, {"DepthwiseConv2dNativeBackpropFilter"sv, low},
    {"DepthwiseConv2dNativeBackpropInput"sv, low}, {"DynamicPartition"sv, keep}, {"DynamicStitch"sv, keep},
    {"Einsum"sv, low}, {"Elu"sv, widest}, {"EluGrad"sv, widest}, {"EnsureShape"sv, keep}, {"Enter"sv, keep},
    {"Equal"sv, keep}, {"Erf"sv, widest}, {"Erfc"sv, widest}, {"Exit"sv, keep}, {"Exp"sv, full},
    {"ExpandDims"sv, keep}, {"Expm1"sv, full}, {"FastUnsortedSegmentMax"sv, low}, {"Fill"sv, keep},
    {"Floor"sv, keep}, {"FloorDiv"sv, widest}, {"FusedBatchNormGradV2"sv, widest},
    {"FusedBatchNormGradV3"sv, widest}, {"FusedBatchNormV2"sv, widest}, {"FusedBatchNormV3"sv, widest},
    {"FusedConv2DBiasActivation"sv, low}, {"FusedSparseConvGpuV2"sv, low}, {"GRUBlockCell"sv, low},
    {"GRUBlockCellGrad"sv, low}, {"Gather"sv, keep}, {"GatherNd"sv, keep}, {"GatherV2"sv, keep},
    {"Greater"sv, keep}, {"GreaterEqual"sv, keep}, {"Identity"sv, keep}, {"IdentityN"sv, keep},
    {"Inv"sv, widest}, {"IsFinite"sv, keep}, {"IsInf"sv, keep}, {"IsNan"sv, keep}, {"L2Loss"sv, full},
    {"LSTMBlockCell"sv, low}, {"LSTMBlockCellGrad"sv, low}, {"LeakyRelu"sv, widest},
    {"LeakyReluGrad"sv, widest}, {"Less"sv, keep}, {"LessEqual"sv, keep}, {"Log"sv, widest},
    {"Log1p"sv, widest}, {"LogSoftmax"sv, widest}, {"MatMul"sv, low}, {"Max"sv, keep}, {"MaxPool"sv, keep},
    {"MaxPool3D"sv, keep}, {"MaxPool3DGrad"sv, keep}, {"MaxPool3DGradGrad"sv, keep}, {"MaxPoolGrad"sv, keep},
    {"MaxPoolGradGrad"sv, keep}, {"MaxPoolGradGradV2"sv, keep}, {"MaxPoolGradV2"sv, keep},
    {"MaxPoolV2"sv, keep}, {"Maximum"sv, keep}, {"Mean"sv, full}, {"Merge"sv, keep}, {"Mha"sv, low},
    {"MhaV2"sv, low}, {"Min"sv, keep}, {"Minimum"sv, keep}, {"MirrorPad"sv, keep}, {"MirrorPadGrad"sv, keep},
    {"Mul"sv, widest}, {"Neg"sv, keep}, {"NextIteration"sv, keep}, {"NotEqual"sv, keep}, {"OneHot"sv, keep},
    {"OnesLike"sv, keep}, {"Pack"sv, keep}, {"Pad"sv, keep}, {"PadV2"sv, keep}, {"Pmlp"sv, low},
    {"Pow"sv, full}, {"PreventGradient"sv, keep}, {"Prod"sv, widest}, {"Rank"sv, keep}, {"RealDiv"sv, widest},
    {"Reciprocal"sv, widest}, {"Relu"sv, keep}, {"Relu6"sv, keep}, {"Relu6Grad"sv, keep},
    {"ReluGrad"sv, keep}, {"Reshape"sv, keep}, {"ResizeNearestNeighbor"sv, keep},
    {"ResizeNearestNeighborGrad"sv, keep}, {"Reverse"sv, keep}, {"ReverseSequence"sv, keep},
    {"ReverseV2"sv, keep}, {"Round"sv, keep}, {"SaveV2"sv, full}, {"Select"sv, keep}, {"SelectV2"sv, keep},
    {"Selu"sv, widest}, {"SeluGrad"sv, widest}, {"Shape"sv, keep}, {"ShapeN"sv, keep}, {"Sigmoid"sv, widest},
    {"SigmoidGrad"sv, widest}, {"Sign"sv, keep}, {"Size"sv, keep}, {"Slice"sv, keep}, {"Snapshot"sv, keep},
    {"Softmax"sv, widest}, {"SoftmaxCrossEntropyWithLogits"sv, full}, {"Softplus"sv, widest},
    {"SoftplusGrad"sv, widest}, {"Softsign"sv, widest}, {"SoftsignGrad"sv, widest}, {"SpaceToBatch"sv, keep},
    {"SpaceToBatchND"sv, keep}, {"SpaceToDepth"sv, keep}, {"SparseSoftmaxCrossEntropyWithLogits"sv, full},
    {"Split"sv, keep}, {"SplitV"sv, keep}, {"Sqrt"sv, widest}, {"Squeeze"sv, keep}, {"StopGradient"sv, keep},
    {"StridedSlice"sv, keep}, {"StridedSliceGrad"sv, keep}, {"Sub"sv, widest}, {"Sum"sv, full},
    {"Switch"sv, keep}, {"Tanh"sv, widest}, {"TanhGrad"sv, widest}, {"TensorListConcat"sv, keep},
    {"TensorListConcatLists"sv, keep}, {"TensorListConcatV2"sv, keep}, {"TensorListFromTensor"sv, keep},
    {"TensorListGather"sv, keep}, {"TensorListGetItem"sv, keep}, {"TensorListPopBack"sv, keep},
    {"TensorListPushBack"sv, keep}, {"TensorListPushBackBatch"sv, keep}, {"TensorListScatter"sv, keep},
    {"TensorListScatterIntoExistingList"sv, keep}, {"TensorListScatterV2"sv, keep},
    {"TensorListSetItem"sv, keep}, {"TensorListSplit"sv, keep}, {"TensorListStack"sv, keep}, {"Tile"sv, keep},
    {"Tmlp"sv, low}, {"TmlpV2"sv, low}, {"TmlpV3"sv, low}, {"TopK"sv, keep}, {"TopKV2"sv, keep},
    {"Transpose"sv, keep}, {"Unpack"sv, keep}, {"VoxelMax"sv, low}, {"Where"sv, keep}, {"ZerosLike"sv, keep},
    {"_FusedBatchNormEx"sv, widest},
};
// clang-format on

inline constexpr auto tensorflow_2_18 = revised(tensorflow, std::array{"VoxelMax"sv});

// clang-format off
inline constexpr op_rule tensorflow_bfloat16[] = {
    {"Abs"sv, keep}, {"Add"sv, widest}, {"AddN"sv, widest}, {"AddV2"sv, widest}, {"ArgMax"sv, keep},
    {"ArgMin"sv, keep}, {"AvgPool"sv, widest}, {"AvgPool3D"sv, widest}, {"AvgPool3DGrad"sv, widest},
    {"AvgPoolGrad"sv, widest}, {"BatchMatMul"sv, low}, {"BatchMatMulV2"sv, low}, {"BatchToSpace"sv, keep},
    {"BatchToSpaceND"sv, keep}, {"BiasAdd"sv, widest}, {"BiasAddGrad"sv, widest}, {"BiasAddV1"sv, widest},
    {"BroadcastTo"sv, keep}, {"Ceil"sv, keep}, {"CheckNumerics"sv, keep}, {"ClipByValue"sv, keep},
    {"Concat"sv, keep}, {"ConcatV2"sv, keep}, {"Conv2D"sv, low}, {"Conv2DBackpropFilter"sv, low},
    {"Conv2DBackpropInput"sv, low}, {"Conv3D"sv, low}, {"Conv3DBackpropFilterV2"sv, low},
    {"Conv3DBackpropInputV2"sv, low}, {"DepthToSpace"sv, keep}, {"DepthwiseConv2dNative"sv, low},
    {"DepthwiseConv2dNativeBackpropFilter"sv, low}, {"DepthwiseConv2dNativeBackpropInput"sv, low},
    {"DynamicPartition"sv, keep}, {"DynamicStitch"sv, keep}, {"Einsum"sv, low}, {"Elu"sv, widest},
    {"EluGrad"sv, widest}, {"EnsureShape"sv, keep}, {"Enter"sv, keep}, {"Equal"sv, keep}, {"Erf"sv, widest},
    {"Erfc"sv, widest}, {"Exit"sv, keep}, {"Exp"sv, full}, {"ExpandDims"sv, keep}, {"Expm1"sv, full},
    {"Fill"sv, keep}, {"Floor"sv, keep}, {"FloorDiv"sv, widest}, {"FusedBatchNormGradV2"sv, widest},
    {"FusedBatchNormGradV3"sv, widest}, {"FusedBatchNormV2"sv, widest}, {"FusedBatchNormV3"sv, widest},
    {"FusedPadConv2D"sv, low}, {"Gather"sv, keep}, {"GatherNd"sv, keep}, {"GatherV2"sv, keep},
    {"Greater"sv, keep}, {"GreaterEqual"sv, keep}, {"Identity"sv, keep}, {"IdentityN"sv, keep},
    {"Inv"sv, widest}, {"IsFinite"sv, keep}, {"IsInf"sv, keep}, {"IsNan"sv, keep}, {"L2Loss"sv, full},
    {"LeakyRelu"sv, widest}, {"LeakyReluGrad"sv, widest}, {"Less"sv, keep}, {"LessEqual"sv, keep},
    {"Log"sv, widest}, {"Log1p"sv, widest}, {"LogSoftmax"sv, widest}, {"MatMul"sv, low}, {"Max"sv, keep},
    {"MaxPool"sv, keep}, {"MaxPool3D"sv, keep}, {"MaxPool3DGrad"sv, keep}, {"MaxPoolGrad"sv, keep},
    {"MaxPoolGradGrad"sv, keep}, {"MaxPoolGradGradV2"sv, keep}, {"MaxPoolGradV2"sv, keep},
    {"MaxPoolV2"sv, keep}, {"Maximum"sv, keep}, {"Mean"sv, widest}, {"Merge"sv, keep}, {"Min"sv, keep},
    {"Minimum"sv, keep}, {"MirrorPad"sv, keep}, {"MirrorPadGrad"sv, keep}, {"Mul"sv, widest}, {"Neg"sv, keep},
    {"NextIteration"sv, keep}, {"NotEqual"sv, keep}, {"OnesLike"sv, keep}, {"Pack"sv, keep}, {"Pad"sv, keep},
    {"PadV2"sv, keep}, {"Pow"sv, full}, {"PreventGradient"sv, keep}, {"Prod"sv, widest}, {"Rank"sv, keep},
    {"RealDiv"sv, widest}, {"Reciprocal"sv, widest}, {"Relu"sv, keep}, {"Relu6"sv, keep},
    {"Relu6Grad"sv, keep}, {"ReluGrad"sv, keep}, {"Reshape"sv, keep}, {"ResizeBilinear"sv, keep},
    {"ResizeNearestNeighbor"sv, keep}, {"ResizeNearestNeighborGrad"sv, keep}, {"Reverse"sv, keep},
    {"ReverseSequence"sv, keep}, {"ReverseV2"sv, keep}, {"Round"sv, keep}, {"Rsqrt"sv, widest},
    {"SaveV2"sv, full}, {"ScatterNd"sv, keep}, {"Select"sv, keep}, {"SelectV2"sv, keep}, {"Selu"sv, widest},
    {"SeluGrad"sv, widest}, {"Shape"sv, keep}, {"ShapeN"sv, keep}, {"Sigmoid"sv, widest},
    {"SigmoidGrad"sv, widest}, {"Sign"sv, keep}, {"Slice"sv, keep}, {"Snapshot"sv, keep},
    {"Softmax"sv, widest}, {"SoftmaxCrossEntropyWithLogits"sv, full}, {"Softplus"sv, widest},
    {"SoftplusGrad"sv, widest}, {"Softsign"sv, widest}, {"SoftsignGrad"sv, widest}, {"SpaceToBatch"sv, keep},
    {"SpaceToBatchND"sv, keep}, {"SpaceToDepth"sv, keep}, {"SparseSoftmaxCrossEntropyWithLogits"sv, full},
    {"Split"sv, keep}, {"SplitV"sv, keep}, {"Sqrt"sv, widest}, {"Square"sv, widest},
    {"SquaredDifference"sv, widest}, {"Squeeze"sv, keep}, {"StatelessWhile"sv, keep},
    {"StopGradient"sv, keep}, {"StridedSlice"sv, keep}, {"StridedSliceGrad"sv, keep}, {"Sub"sv, widest},
    {"Sum"sv, widest}, {"Switch"sv, keep}, {"Tanh"sv, widest}, {"TanhGrad"sv, widest},
    {"TensorListConcat"sv, keep}, {"TensorListConcatLists"sv, keep}, {"TensorListConcatV2"sv, keep},
    {"TensorListFromTensor"sv, keep}, {"TensorListGather"sv, keep}, {"TensorListGetItem"sv, keep},
    {"TensorListPopBack"sv, keep}, {"TensorListPushBack"sv, keep}, {"TensorListPushBackBatch"sv, keep},
    {"TensorListScatter"sv, keep}, {"TensorListScatterIntoExistingList"sv, keep},
    {"TensorListScatterV2"sv, keep}, {"TensorListSetItem"sv, keep}, {"TensorListSplit"sv, keep},
    {"TensorListStack"sv, keep}, {"Tile"sv, keep}, {"TopK"sv, keep}, {"TopKV2"sv, keep},
    {"Transpose"sv, keep}, {"Unpack"sv, keep}, {"Where"sv, keep}, {"While"sv, keep}, {"ZerosLike"sv, keep},
    {"_FusedBatchNormEx"sv, widest},
};
// clang-format on

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
