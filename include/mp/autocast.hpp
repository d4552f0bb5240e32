// SPDX-License-Identifier: MIT
/// \file
/// Autocast: ops are tagged with a category, policies map categories and argument types to the precision to
/// compute in, and a dispatcher casts and calls. Policies are types; a region chooses among them at run time.
#pragma once

#include <mp/autocast/call.hpp>
#include <mp/autocast/cast_cache.hpp>
#include <mp/autocast/cast_ledger.hpp>
#include <mp/autocast/cast_observer.hpp>
#include <mp/autocast/cast_timer.hpp>
#include <mp/autocast/category.hpp>
#include <mp/autocast/custom_function.hpp>
#include <mp/autocast/decision.hpp>
#include <mp/autocast/dispatch.hpp>
#include <mp/autocast/explain.hpp>
#include <mp/autocast/name_pattern.hpp>
#include <mp/autocast/op_list.hpp>
#include <mp/autocast/operand.hpp>
#include <mp/autocast/policy.hpp>
#include <mp/autocast/precision.hpp>
#include <mp/autocast/region.hpp>
#include <mp/autocast/resolution.hpp>
#include <mp/autocast/types.hpp>
