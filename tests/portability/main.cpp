// SPDX-License-Identifier: MIT
// checksums             prints a checksum of what every public operation but the ops computes here
// checksums <file>      compares them with those of the file, and those of ops with their own list; ends with
// 1
//                       if one differs
#include "checksums.hpp"

#include <cinttypes>
#include <cstdio>
#include <map>
#include <string>

namespace {

/// The lines of a file, without the comments that begin with #.
bool read_lines(const char* path, std::map<std::string, std::uint64_t>& to) {
    std::FILE* const file = std::fopen(path, "r");
    if (file == nullptr) return false;
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        char name[200];
        std::uint64_t sum = 0;
        if (line[0] != '#' && std::sscanf(line, "%199s %" SCNx64, name, &sum) == 2) to[name] = sum;
    }
    std::fclose(file);
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    portability::report report;
    portability::add_number_checksums(report);
    portability::add_more_number_checksums(report);
    portability::add_function_checksums(report);
    portability::add_text_checksums(report);
    portability::add_array_checksums(report);
    portability::add_block_checksums(report);
    portability::add_product_checksums(report);
    portability::add_scaling_checksums(report);
    portability::add_optimizer_checksums(report);
    if (count < 2) {
        for (const auto& [name, sum] : report.lines()) std::printf("%s %016" PRIx64 "\n", name.c_str(), sum);
        return 0;
    }
    portability::add_ops_checksums(report);
    std::map<std::string, std::uint64_t> expected;
    for (const auto& [name, sum] : portability::expected_of_ops()) expected[name] = sum;
    if (!read_lines(arguments[1], expected)) {
        std::fprintf(stderr, "checksums: cannot read %s\n", arguments[1]);
        return 2;
    }
    std::size_t different = 0;
    for (const auto& [name, sum] : report.lines()) {
        const auto it = expected.find(name);
        if (it != expected.end() && it->second == sum) continue;
        ++different;
        std::printf("different: %s is %016" PRIx64 "\n", name.c_str(), sum);
    }
#if defined(MP_FEW_CHECKSUMS)
    const bool complete = true;
#else
    const bool complete = expected.size() == report.lines().size();
#endif
    if (!complete) std::printf("%zu are expected\n", expected.size());
    std::printf("%zu of %zu checksums differ\n", different, report.lines().size());
    return different == 0 && complete ? 0 : 1;
}
