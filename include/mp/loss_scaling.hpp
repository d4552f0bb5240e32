// SPDX-License-Identifier: MIT
/// \file
/// Loss scaling: scalers, their policies, the protocol they drive optimizers by, and the unscaling algorithm.
///
/// What fewer programs need, and what costs compile time, is included by itself: mp/scaling/state_text.hpp
/// and mp/compat/states.hpp (saving and importing), mp/report/timeline.hpp and replay.hpp (pages, recorded
/// runs), mp/scaling/tensor_scaling.hpp and amax_history.hpp (scales of tensors in 8 bits),
/// layerwise_scaling.hpp.
#pragma once

#include <mp/compat/scalers.hpp>
#include <mp/scaling/dynamic_policy.hpp>
#include <mp/scaling/event_log.hpp>
#include <mp/scaling/gradient_accumulator.hpp>
#include <mp/scaling/loss_scaler.hpp>
#include <mp/scaling/observation.hpp>
#include <mp/scaling/optimizer_protocol.hpp>
#include <mp/scaling/policy.hpp>
#include <mp/scaling/reducer.hpp>
#include <mp/scaling/scale_change_names.hpp>
#include <mp/scaling/scale_event.hpp>
#include <mp/scaling/scaled_gradient.hpp>
#include <mp/scaling/static_policy.hpp>
#include <mp/scaling/step_result.hpp>
#include <mp/scaling/training_iteration.hpp>
#include <mp/scaling/unscale.hpp>
