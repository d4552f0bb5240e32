// SPDX-License-Identifier: MIT
// Compiled for a newer processor, and linked before the others.
#include "mixed.hpp"

std::uint64_t results_on_a_newer_processor(mp::half* first);
std::uint64_t results_on_a_newer_processor(mp::half* first) {
    *first = *first * *first;
    return results();
}
