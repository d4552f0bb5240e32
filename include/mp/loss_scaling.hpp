// SPDX-License-Identifier: MIT
/// \file
/// Loss scaling: scalers, their policies, the protocol they drive optimizers by, and the unscaling algorithm.
///
/// What fewer programs need, and what costs compile time, is included by itself: mp/nn/scaling/state_text.hpp
/// and mp/frontends/compat/states.hpp (saving and importing), mp/frontends/report/timeline.hpp and replay.hpp (pages, recorded
/// runs), mp/nn/scaling/tensor_scaling.hpp and amax_history.hpp (scales of tensors in 8 bits),
/// layerwise_scaling.hpp.
#pragma once

#include <mp/frontends/compat/scalers.hpp>
#include <mp/nn/scaling/dynamic_policy.hpp>
#include <mp/nn/scaling/event_log.hpp>
#include <mp/nn/scaling/loss_scaler.hpp>
#include <mp/nn/scaling/observation.hpp>
#include <mp/nn/scaling/optimizer_protocol.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/nn/scaling/scale_event.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>
#include <mp/nn/scaling/standard_policy.hpp>
#include <mp/nn/scaling/static_policy.hpp>
#include <mp/nn/scaling/training_iteration.hpp>
#include <mp/nn/scaling/unscale.hpp>
