// SPDX-License-Identifier: MIT
/// \file
/// The dynamic scalers of other systems, event for event: the same scale and the same skips for the same
/// sequence of clean and bad iterations, their defects included. Parameters have the names and defaults that
/// they have there.
///
///     mp::loss_scaler scaler(mp::deepspeed_policy{.loss_scale_window = 500});
///
/// Where a system raises an exception at its floor, loss_scaler::update throws scale_error, and nothing has
/// changed. Systems that keep the scale as a number of Python's have it as double here.
#pragma once

#include <mp/scaling/apex_policies.hpp>          // apex, apex_fp16_utils, apex_hysteresis, mxnet
#include <mp/scaling/classic_policies.hpp>       // openseq2seq, chainer
#include <mp/scaling/distribution_policies.hpp>  // logmax of OpenSeq2Seq, histogram of PopART
#include <mp/scaling/large_model_policies.hpp>   // deepspeed, deepspeed_fused, megatron, fairseq
#include <mp/scaling/pytorch_policy.hpp>         // pytorch, sharded_pytorch
#include <mp/scaling/tensorflow_policies.hpp>    // tensorflow, keras, jmp
