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

#include <mp/frontends/compat/apex/scaler.hpp>        // apex, apex_fp16_utils, apex_hysteresis
#include <mp/frontends/compat/chainer.hpp>            // chainer
#include <mp/frontends/compat/deepspeed/scaler.hpp>   // deepspeed, deepspeed_fused
#include <mp/frontends/compat/fairseq.hpp>            // fairseq
#include <mp/frontends/compat/jmp/scaler.hpp>         // jmp
#include <mp/frontends/compat/keras/scaler.hpp>       // keras
#include <mp/frontends/compat/megatron/scaler.hpp>    // megatron
#include <mp/frontends/compat/mxnet/scaler.hpp>       // mxnet
#include <mp/frontends/compat/openseq2seq.hpp>        // openseq2seq, logmax
#include <mp/frontends/compat/popart.hpp>             // histogram
#include <mp/frontends/compat/pytorch/scaler.hpp>     // pytorch, sharded_pytorch
#include <mp/frontends/compat/tensorflow/scaler.hpp>  // tensorflow
