// SPDX-License-Identifier: MIT
/// \file
/// The operations that training a small network needs, forward and backward, each with its autocast category.
#pragma once

#include <mp/ops/activations.hpp>
#include <mp/ops/argmax.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/arithmetic.hpp>
#include <mp/ops/attention.hpp>
#include <mp/ops/convolution.hpp>
#include <mp/ops/dropout.hpp>
#include <mp/ops/embedding.hpp>
#include <mp/ops/linear.hpp>
#include <mp/ops/linear_with_preactivation.hpp>
#include <mp/ops/loss_factors.hpp>
#include <mp/ops/losses.hpp>
#include <mp/ops/matrix_operand.hpp>
#include <mp/ops/normalization.hpp>
#include <mp/ops/pooling.hpp>
#include <mp/ops/rearrange.hpp>
#include <mp/ops/reductions.hpp>
#include <mp/ops/relu.hpp>
#include <mp/ops/rotary_embedding.hpp>
#include <mp/ops/softmax.hpp>
#include <mp/ops/softmax_cross_entropy.hpp>
