// SPDX-License-Identifier: MIT
// combinations                  prints the digests that are the same on every processor, by name
// combinations <file>           compares them with those of the file; ends with 1 if one differs
// combinations --local          prints also those that depend on the processor, after "local."
// combinations --cases <name>   prints each case of the digests whose names begin so
#include "combinations.hpp"

namespace {

void add_all(portability::combinations& to) {
    portability::add_product_combinations(to);
    portability::add_epilogue_combinations(to);
    portability::add_product_kind_combinations(to);
    portability::add_conversions_from_wide(to);
    portability::add_conversions_from_float8(to);
    portability::add_conversions_from_narrow(to);
    portability::add_optimizer_combinations(to);
    portability::add_op_product_combinations(to);
    portability::add_elementwise_op_combinations(to);
    portability::add_row_op_combinations(to);
    portability::add_layer_op_combinations(to);
}

void print(const char* prefix, const std::map<std::string, portability::checksum>& sums) {
    for (const auto& [name, sum] : sums) {
        std::printf("%s%s %016" PRIx64 "\n", prefix, name.c_str(), sum.value());
    }
}

/// Compares with the lines of a file, without the comments that begin with #.
int compare(const portability::combinations& found, const char* path) {
    std::FILE* const file = std::fopen(path, "r");
    if (file == nullptr) {
        std::fprintf(stderr, "combinations: cannot read %s\n", path);
        return 2;
    }
    std::size_t lines = 0;
    std::size_t different = 0;
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        char name[200];
        std::uint64_t sum = 0;
        if (line[0] == '#' || std::sscanf(line, "%199s %" SCNx64, name, &sum) != 2) continue;
        ++lines;
        const auto it = found.everywhere().find(name);
        if (it != found.everywhere().end() && it->second.value() == sum) continue;
        ++different;
        std::printf("different: %s\n", name);
    }
    std::fclose(file);
    std::printf("%zu of %zu digests of %zu results differ\n", different, lines, found.count());
    if (lines != found.everywhere().size()) std::printf("%zu were computed\n", found.everywhere().size());
    return different == 0 && lines == found.everywhere().size() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view option = count > 1 ? arguments[1] : "";
    portability::combinations found(option == "--cases" && count > 2 ? arguments[2] : nullptr);
    add_all(found);
    if (option == "--cases") return 0;
    if (!option.empty() && option != "--local") return compare(found, arguments[1]);
    print("", found.everywhere());
    if (option == "--local") print("local.", found.local());
    std::fprintf(stderr, "%zu results\n", found.count());
    return 0;
}
