// SPDX-License-Identifier: MIT
/// \file
/// The operations that training a small network needs, forward and backward, each with its autocast category.
#pragma once

#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/argmax.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/arithmetic.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/convolution.hpp>
#include <mp/nn/ops/dropout.hpp>
#include <mp/nn/ops/embedding.hpp>
#include <mp/nn/ops/linear.hpp>
#include <mp/nn/ops/loss_factors.hpp>
#include <mp/nn/ops/losses.hpp>
#include <mp/nn/ops/matrix_operand.hpp>
#include <mp/nn/ops/normalization.hpp>
#include <mp/nn/ops/pooling.hpp>
#include <mp/nn/ops/rearrange.hpp>
#include <mp/nn/ops/reductions.hpp>
#include <mp/nn/ops/rotary_embedding.hpp>
#include <mp/nn/ops/softmax.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>
