// SPDX-License-Identifier: MIT
// One program of sources with and without the compiled part, of different options: all have the same results.
#include <cstdint>
#include <cstdio>

std::uint64_t results_of_headers();
std::uint64_t results_of_linked();
std::uint64_t results_of_linked_for_this_processor();

int main() {
    const std::uint64_t expected = results_of_headers();
    const bool same = results_of_linked() == expected && results_of_linked_for_this_processor() == expected;
    std::puts(same ? "all sources give the same results" : "the sources differ");
    return same ? 0 : 1;
}
