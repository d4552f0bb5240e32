// SPDX-License-Identifier: MIT
// The verdicts of the reference implementation of safetensors on generated and mutated headers (header_mutations.py), where
// Python has the package. tests/arrays/io/tensor_header.cpp has a table that needs no Python.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "arrays/io/foreign_files.hpp"
#include "arrays/io/tensor_listing.hpp"
#include "train/training/test_folder.hpp"

TEST_CASE("safetensors: generated and mutated headers have the verdicts of the reference implementation") {
    const test_folder folder;
    if (!run_foreign_files("100000", folder.file(""), "header_mutations.py")) return;
    const std::string records = read_file(folder.file("headers"));
    std::string_view rest = records;
    const auto take = [&] {
        std::uint32_t size = 0;
        std::memcpy(&size, rest.data(), sizeof size);
        const std::string_view taken = rest.substr(4, size);
        rest.remove_prefix(4 + size);
        return taken;
    };
    std::size_t accepted = 0;
    for (std::size_t i = 0; !rest.empty(); ++i) {
        const std::string_view file = take();
        const std::string_view expected = take();
        const std::string found = listing(file);
        if (!expected.empty()) ++accepted;
        if (found == expected) continue;
        FAIL_CHECK("header " << i << ": " << file.substr(8) << "\nreference: " << expected
                             << "\nhere: " << found);
    }
    CHECK(accepted > 10000);
}
