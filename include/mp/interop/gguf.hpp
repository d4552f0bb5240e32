// SPDX-License-Identifier: MIT
/// \file
/// Deprecated path of <mp/arrays/io/gguf.hpp>; to be removed in 0.3.
#pragma once
#include <mp/arrays/io/gguf.hpp>
