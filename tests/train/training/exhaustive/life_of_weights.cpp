// SPDX-License-Identifier: MIT
// 100 000 random sequences of everything that writes weights, under all recipes, in builds with and without NDEBUG.
#include <cstdint>
#include <cstdio>
#include <string>

#include "numbers/format/exhaustive/progress.hpp"
#include "train/training/life_of_weights.hpp"
#include "train/training/test_folder.hpp"

int main() {
    const std::uint64_t sequences = 100'000;
    const test_folder folder;
    exhaustive::progress progress(sequences);
    std::uint64_t differ = 0;
    for (std::uint64_t number = 0; number < sequences; ++number) {
        const std::string found = life_of_weights::difference_of_sequence(number, folder.file("run"));
        if (!found.empty() && ++differ <= 10) {
            std::printf("sequence %llu: %s\n", static_cast<unsigned long long>(number), found.c_str());
        }
        if ((number + 1) % 1000 == 0) progress.show(number + 1, "sequences");
    }
    progress.finish();
    std::printf("%llu of %llu sequences differ\n", static_cast<unsigned long long>(differ),
                static_cast<unsigned long long>(sequences));
    return differ == 0 ? 0 : 1;
}
