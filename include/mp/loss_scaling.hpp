// SPDX-License-Identifier: MIT
/// \file
/// Loss scaling: scalers, their policies, the protocol they drive optimizers by, and the unscaling algorithm.
#pragma once

#include <mp/scaling/amax.hpp>
#include <mp/scaling/amax_history.hpp>
#include <mp/scaling/distribution_policies.hpp>
#include <mp/scaling/dynamic_policy.hpp>
#include <mp/scaling/event_log.hpp>
#include <mp/scaling/foreign_state.hpp>
#include <mp/scaling/gradient_accumulator.hpp>
#include <mp/scaling/layerwise_scaling.hpp>
#include <mp/scaling/loss_scaler.hpp>
#include <mp/scaling/observation.hpp>
#include <mp/scaling/optimizer_protocol.hpp>
#include <mp/scaling/policy.hpp>
#include <mp/scaling/presets.hpp>
#include <mp/scaling/pytorch_policy.hpp>
#include <mp/scaling/reducer.hpp>
#include <mp/scaling/scale_change_names.hpp>
#include <mp/scaling/scale_event.hpp>
#include <mp/scaling/scaled_gradient.hpp>
#include <mp/scaling/scaled_tensor.hpp>
#include <mp/scaling/state_text.hpp>
#include <mp/scaling/static_policy.hpp>
#include <mp/scaling/step_result.hpp>
#include <mp/scaling/tensor_scaling.hpp>
#include <mp/scaling/tensor_statistics.hpp>
#include <mp/scaling/training_iteration.hpp>
#include <mp/scaling/unscale.hpp>
