// SPDX-License-Identifier: MIT
#pragma once

#include <mp/executor.hpp>

#include <cstdint>
#include <string>

/// A checksum of conversions, functions and products of arrays.
std::uint64_t results();
std::uint64_t results_of_any_target();

/// The message of the error for an executor that names `isa`, or nothing.
std::string refusal(mp::instruction_set isa);
std::string refusal_of_any_target(mp::instruction_set isa);
