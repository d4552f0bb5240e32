// SPDX-License-Identifier: MIT
/// \file
/// Runs a fuzz target on the inputs of a corpus, without libFuzzer.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace fuzzing {

/// Calls target(bytes, size) for every file of the folder and for no bytes. The target ends the program by a signal where the
/// library is wrong; doctest then prints the file.
inline void replay(const char* folder, int (*target)(const std::uint8_t*, std::size_t)) {
    std::size_t inputs = 0;
    target(reinterpret_cast<const std::uint8_t*>(""), 0);
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        INFO(entry.path().string());
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        ++inputs;
    }
    CHECK(inputs > 0);
}

}  // namespace fuzzing
