// SPDX-License-Identifier: MIT
/// \file
/// The durations and clocks of <chrono>, without the calendars and streams that libstdc++ includes with them.
#pragma once

#include <version>

#if defined(__GLIBCXX__)
#include <mutex>  // waits for durations, and includes no more of <chrono> than that
#else
#include <chrono>
#endif
