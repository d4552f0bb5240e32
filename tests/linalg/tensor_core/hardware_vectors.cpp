// SPDX-License-Identifier: MIT
// 120 000 results of real tensor cores. The file lies beside the source tree (../shared/data, or the folder
// that the environment variable MP_SHARED_DATA names) and is not a part of it; without it the test says so
// and passes. examples.cpp keeps the model where the data is not at hand.
#include "vectors.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace {

std::string vector_file() {
    const char* const folder = std::getenv("MP_SHARED_DATA");
    const std::string name = "/tensor_core_vectors.bin.xz";
    return (folder != nullptr ? std::string(folder) : MP_SOURCE_DIR "/../shared/data") + name;
}

/// The unpacked file, or nothing where it does not exist or there is no xz.
std::vector<unsigned char> unpacked() {
    const std::string path = vector_file();
    std::vector<unsigned char> bytes;
    if (!std::filesystem::exists(path) || path.find('\'') != std::string::npos) return bytes;
    std::FILE* const pipe = ::popen(("xz -dc '" + path + "' 2>/dev/null").c_str(), "r");
    if (pipe == nullptr) return bytes;
    unsigned char buffer[1 << 16];
    for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
        bytes.insert(bytes.end(), buffer, buffer + got);
    }
    if (::pclose(pipe) != 0) bytes.clear();
    return bytes;
}

/// Little-endian words and texts, one after the other.
class reader {
public:
    explicit reader(std::vector<unsigned char> bytes) : bytes_(std::move(bytes)) {}
    [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

    std::uint32_t word(std::size_t width) {
        std::uint32_t result = 0;
        for (std::size_t i = 0; i < width; ++i) result |= std::uint32_t{bytes_.at(at_++)} << (8 * i);
        return result;
    }
    std::vector<std::uint32_t> words(std::size_t count, std::size_t width) {
        std::vector<std::uint32_t> result(count);
        for (std::uint32_t& it : result) it = word(width);
        return result;
    }
    std::string text(std::size_t length) {
        std::string result;
        for (std::size_t i = 0; i < length; ++i) result += static_cast<char>(bytes_.at(at_++));
        return result.c_str();
    }

private:
    std::vector<unsigned char> bytes_;
    std::size_t at_ = 0;
};

std::vector<vectors::set> read_sets(reader file) {
    std::vector<vectors::set> sets;
    REQUIRE(file.text(4) == "TCV1");
    while (!file.at_end()) {
        vectors::set it;
        it.gpu = file.text(8);
        it.operands = file.text(8);
        it.output = file.text(8);
        it.terms = file.word(4);
        const std::size_t count = file.word(4);
        const std::size_t width = it.operands == "tf32" ? 4 : it.operands[0] == 'E' ? 1 : 2;
        it.a = file.words(count * it.terms, width);
        it.b = file.words(count * it.terms, width);
        it.c = file.words(count, 4);
        it.result = file.words(count, 4);
        sets.push_back(std::move(it));
    }
    return sets;
}

TEST_CASE(
    "every recorded result of V100, A100, A2, Ada, L40S, H100, H200 and B200 is the model's, bit for bit") {
    const std::vector<unsigned char> bytes = unpacked();
    if (bytes.empty()) {
        MESSAGE("skipped: " << vector_file() << " is not there, or cannot be unpacked by xz");
        return;
    }
    const std::vector<vectors::set> sets = read_sets(reader(bytes));
    CHECK(sets.size() == 48);
    for (const vectors::set& it : sets) {
        const auto [model, unit] = vectors::model_for(it);
        const bool is_modelled = model != nullptr;
        REQUIRE_MESSAGE(is_modelled, it.name());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < it.c.size(); ++i) {
            const auto a = std::span(it.a).subspan(i * it.terms, it.terms);
            const auto b = std::span(it.b).subspan(i * it.terms, it.terms);
            wrong += model(a, b, vectors::addend_of(it, i), unit) == it.result[i] ? 0 : 1;
        }
        CHECK_MESSAGE(wrong == 0, it.name() << ": " << wrong << " of " << it.c.size());
    }
}

}  // namespace
