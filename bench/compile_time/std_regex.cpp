// SPDX-License-Identifier: MIT
// The unit of the table: what a program of the standard library alone takes.
#include <regex>
#include <string>

int main() {
    const std::regex pattern("a+b");
    return std::regex_match(std::string("aaab"), pattern) ? 0 : 1;
}
