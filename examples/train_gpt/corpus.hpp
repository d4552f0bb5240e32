// SPDX-License-Identifier: MIT
/// \file
/// A text as numbers: its characters, those to train on and those to validate with.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "../common/user_error.hpp"

namespace examples::train_gpt {

/// The characters of a text that occur, in order, are tokens 0, 1, 2 ...
struct corpus {
    std::string characters;  ///< of each token
    std::vector<int> training;
    std::vector<int> validation;  ///< the last tenth

    /// Throws user_error for a text of fewer than 10 * (context + 1) characters.
    corpus(const std::string& text, std::ptrdiff_t context) {
        if (text.size() < 10 * static_cast<std::size_t>(context + 1)) {
            throw user_error("the text has " + std::to_string(text.size()) + " characters; a context of " +
                             std::to_string(context) + " needs " + std::to_string(10 * (context + 1)));
        }
        std::array<int, 256> token{};
        for (const char c : text) token[static_cast<unsigned char>(c)] = 1;
        for (int c = 0; c < 256; ++c) {
            if (token[static_cast<std::size_t>(c)] == 0) continue;
            token[static_cast<std::size_t>(c)] = static_cast<int>(characters.size());
            characters.push_back(static_cast<char>(c));
        }
        const std::size_t cut = text.size() - text.size() / 10;
        for (std::size_t i = 0; i < text.size(); ++i) {
            (i < cut ? training : validation).push_back(token[static_cast<unsigned char>(text[i])]);
        }
    }
};

/// A file, or all headers in a folder, one after the other by their names.
inline std::string read_text(const std::string& path) {
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
        for (const auto& it : fs::recursive_directory_iterator(path)) {
            if (it.path().extension() == ".hpp") files.push_back(it.path());
        }
        std::sort(files.begin(), files.end());
    } else {
        files.emplace_back(path);
    }
    std::string text;
    for (const fs::path& it : files) {
        std::ifstream file(it, std::ios::binary);
        if (!file) throw user_error("cannot read '" + it.string() + "'");
        text.append(std::istreambuf_iterator<char>(file), {});
    }
    return text;
}

}  // namespace examples::train_gpt
