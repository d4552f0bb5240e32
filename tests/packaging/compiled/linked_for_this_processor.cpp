// SPDX-License-Identifier: MIT
// With the compiled part, which has none of this source's options.
#include "results.hpp"

std::uint64_t results_of_linked_for_this_processor();
std::uint64_t results_of_linked_for_this_processor() {
    return results();
}
