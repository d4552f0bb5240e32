// SPDX-License-Identifier: MIT
/// \file
/// Autocast: ops are tagged with a category, policies map categories and argument types to the precision to
/// compute in, and a dispatcher casts and calls. Policies are types; a region chooses among them at run time.
#pragma once

#include <mp/nn/autocast/call.hpp>
#include <mp/nn/autocast/cast_cache.hpp>
#include <mp/nn/autocast/cast_ledger.hpp>
#include <mp/nn/autocast/cast_observer.hpp>
#include <mp/nn/autocast/cast_timer.hpp>
#include <mp/nn/autocast/category.hpp>
#include <mp/nn/autocast/custom_function.hpp>
#include <mp/nn/autocast/decision.hpp>
#include <mp/nn/autocast/dispatch.hpp>
#include <mp/nn/autocast/explain.hpp>
#include <mp/nn/autocast/name_pattern.hpp>
#include <mp/nn/autocast/op_list.hpp>
#include <mp/nn/autocast/operand.hpp>
#include <mp/nn/autocast/policy.hpp>
#include <mp/nn/autocast/precision.hpp>
#include <mp/nn/autocast/region.hpp>
#include <mp/nn/autocast/resolution.hpp>
#include <mp/nn/autocast/types.hpp>
