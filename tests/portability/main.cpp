// SPDX-License-Identifier: MIT
// checksums                       prints a checksum of what every public operation but the ops computes here
// checksums <file>                compares them with those of the file, and those of ops with their own list;
// ends
//                                 with 1 if one differs
// checksums <file> environments   the same in all rounding directions of the caller, and on x86 with
// subnormal numbers
//                                 flushed and taken for zero
#include "checksums.hpp"

#include "numbers/format/flushing_scope.hpp"
#include "numbers/format/rounding_scope.hpp"

#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>

namespace {

/// The lines of a file, without the comments that begin with #.
bool read_vectors(const char* path, std::map<std::string, std::uint64_t>& to) {
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

/// Everything but the ops, which have a list of their own.
void add_checksums(portability::report& report) {
    portability::add_number_checksums(report);
    portability::add_more_number_checksums(report);
    portability::add_function_checksums(report);
    portability::add_p3109_checksums(report);
    portability::add_text_checksums(report);
    portability::add_array_checksums(report);
    portability::add_block_checksums(report);
    portability::add_product_checksums(report);
    portability::add_scaling_checksums(report);
    portability::add_optimizer_checksums(report);
    portability::add_tensor_scale_checksums(report);
    portability::add_autocast_checksums(report);
    portability::add_analysis_checksums(report);
}

/// The number of lines that differ from what is expected; says which.
std::size_t count_differences(const std::map<std::string, std::uint64_t>& expected, const char* environment) {
    portability::report report;
    add_checksums(report);
    portability::add_ops_checksums(report);
    std::size_t different = 0;
    for (const auto& [name, sum] : report.lines()) {
        const auto it = expected.find(name);
        if (it != expected.end() && it->second == sum) continue;
        ++different;
        std::printf("different: %s is %016" PRIx64 "\n", name.c_str(), sum);
    }
#if !defined(MP_FEW_CHECKSUMS)
    if (expected.size() != report.lines().size()) {
        std::printf("%zu are expected\n", expected.size());
        ++different;
    }
#endif
    std::printf("%s: %zu of %zu checksums differ\n", environment, different, report.lines().size());
    return different;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        portability::report report;
        add_checksums(report);
        for (const auto& [name, sum] : report.lines()) std::printf("%s %016" PRIx64 "\n", name.c_str(), sum);
        return 0;
    }
    std::map<std::string, std::uint64_t> expected;
    for (const auto& [name, sum] : portability::expected_of_ops()) expected[name] = sum;
    if (!read_vectors(arguments[1], expected)) {
        std::fprintf(stderr, "checksums: cannot read %s\n", arguments[1]);
        return 2;
    }
    std::size_t different = count_differences(expected, "as the program starts");
    if (count > 2) {
        const char* const names[] = {"to nearest", "upward", "downward", "toward zero"};
        for (std::size_t i = 0; i < std::size(every_direction); ++i) {
            const rounding_scope rounding(every_direction[i]);
            different += count_differences(expected, names[i]);
        }
#if TEST_CAN_FLUSH
        const flushing_scope flushing;
        different += count_differences(expected, "subnormal numbers flushed");
#endif
    }
    return different == 0 ? 0 : 1;
}
