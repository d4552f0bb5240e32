// SPDX-License-Identifier: MIT
// With the compiled part, as mp::compiled has it.
#include "results.hpp"

std::uint64_t results_of_linked();
std::uint64_t results_of_linked() {
    return results();
}
