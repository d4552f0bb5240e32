// SPDX-License-Identifier: MIT
// A million steps with accumulation, a thousand skipped steps and more, groups whose options change and ten resumes
// against the same in double: errors of an update must not add up, nor counts run away.
#include <mp/half.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

#include "numbers/format/exhaustive/progress.hpp"
#include "train/training/long_run.hpp"

namespace {

template <class Storage>
bool ends_alike(const char* name, double most) {
    const long_run::plan how{1'000'000};
    const std::string checkpoint = (std::filesystem::temp_directory_path() / "mp_million_steps").string();
    exhaustive::progress progress(how.steps);
    const long_run::outcome found = long_run::compare<Storage>(how, checkpoint, [&](std::uint64_t step) {
        if ((step + 1) % 10'000 == 0) progress.show(step + 1, name);
    });
    progress.finish();
    std::filesystem::remove(checkpoint);
    const bool right = found.difference < most && found.counts_agree;
    std::printf("%s: %llu steps skipped, loss %.6f, weights differ by %.2g of their size, counts %s: %s\n",
                name, static_cast<unsigned long long>(found.skipped), found.loss, found.difference,
                found.counts_agree ? "agree" : "DIFFER", right ? "right" : "WRONG");
    return right;
}

}  // namespace

int main() {
    const bool floats = ends_alike<float>("float", 5e-5);
    const bool halves = ends_alike<mp::half>("half", 5e-4);
    return floats && halves ? 0 : 1;
}
