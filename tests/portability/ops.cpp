// SPDX-License-Identifier: MIT
// Ops for networks, forward and backward. What they must be is in their own list, which the tests of ops
// compare with, too; they take a minute to compile and are left out where few checksums are wanted.
#include "checksums.hpp"

#if __has_include("ops_checksums.hpp") && !defined(MP_FEW_CHECKSUMS)
#include "ops_checksums.hpp"
#include "ops_checksums_expected.hpp"

namespace portability {

void add_ops_checksums(report& to) {
    for (const named_checksum& it : ops_checksums()) to.add(it.name, it.value);
}

std::vector<std::pair<std::string, std::uint64_t>> expected_of_ops() {
    std::vector<std::pair<std::string, std::uint64_t>> result;
    for (const expected_checksum& it : expected_ops_checksums) result.emplace_back(it.name, it.value);
    return result;
}

}  // namespace portability
#else

namespace portability {

void add_ops_checksums(report&) {}
std::vector<std::pair<std::string, std::uint64_t>> expected_of_ops() {
    return {};
}

}  // namespace portability
#endif
