// SPDX-License-Identifier: MIT
// A dozen sums for each of 48 kinds of instructions, with the results of the model as it was when it equalled
// what real tensor cores return: tests/data/README.md.
#include "vectors.hpp"

#include <doctest/doctest.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// The part of a line up to a character, which is taken away with it.
std::string_view next(std::string_view& line, char separator) {
    const std::size_t end = line.find(separator);
    const std::string_view part = line.substr(0, end);
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    return part;
}

std::uint32_t hexadecimal(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    REQUIRE(error == std::errc{});
    REQUIRE(end == text.data() + text.size());
    return value;
}

std::vector<std::uint32_t> codes(std::string_view text) {
    std::vector<std::uint32_t> result;
    while (!text.empty()) result.push_back(hexadecimal(next(text, ' ')));
    return result;
}

TEST_CASE("sums that tell models apart have the results that they had, 12 for each of 48 instructions") {
    std::ifstream file(MP_SOURCE_DIR "/tests/data/tensor_core_examples.csv");
    REQUIRE(file);
    std::map<std::string, int> seen;
    int wrong = 0;
    for (std::string text; std::getline(file, text);) {
        if (text.starts_with('#')) continue;
        std::string_view line = text;
        vectors::set it;
        it.gpu = next(line, ',');
        it.operands = next(line, ',');
        it.output = next(line, ',');
        it.a = codes(next(line, ','));
        it.b = codes(next(line, ','));
        it.c = codes(next(line, ','));
        it.result = codes(next(line, ','));
        REQUIRE(it.a.size() == it.b.size());
        const auto [model, unit] = vectors::model_for(it);
        const bool is_modelled = model != nullptr;
        REQUIRE_MESSAGE(is_modelled, it.name());
        const bool right = model(it.a, it.b, vectors::addend_of(it, 0), unit) == it.result[0];
        CHECK_MESSAGE(right, text);
        wrong += right ? 0 : 1;
        ++seen[it.name()];
    }
    CHECK(wrong == 0);
    CHECK(seen.size() == 48);
    for (const auto& [name, count] : seen) CHECK_MESSAGE(count == 12, name);
}

}  // namespace
