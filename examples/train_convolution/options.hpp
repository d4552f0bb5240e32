// SPDX-License-Identifier: MIT
/// \file
/// The command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../common/arguments.hpp"
#include "../common/preset_names.hpp"

namespace examples::train_convolution {

/// What the user asks for.
struct options {
    bool help = false;
    bool explain = false;
    std::vector<std::string> presets;  ///< names; none means all
    int epochs = 8;
    std::uint64_t seed = 1;
    std::string report;  ///< file; empty means none
    std::string data;
    int threads = 2;
};

inline constexpr std::string_view usage = R"(usage: train_convolution [options]

Trains a small convolutional network on scanned digits under the presets of autocast: the published ways to
run a model in mixed precision, of which each is one line. The same seed gives the same numbers.

  --preset NAME    train under this preset; may be repeated, or be a list: fp16,pytorch_cuda (all of them)
  --epochs N       passes over the training set (8)
  --seed N         seed of the weights and of the order of the images (1)
  --report FILE    draws the losses on a page for the browser
  --explain        says instead what each preset does with each op of the network, and why
  --data FILE      the digits: 64 pixels from 0 to 16 and the digit in each line
  --threads N      trainings that run at a time; the results do not depend on it
  --help           this text

)";

/// Reads the arguments without the program's name: "--option value" or "--option=value". Throws user_error
/// for anything that it does not understand.
inline options parse_options(std::span<const std::string_view> arguments, options defaults = {}) {
    options result = std::move(defaults);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        const std::size_t equals = argument.find('=');
        const std::string_view name = argument.substr(0, equals);
        const auto is = [&](std::string_view option) { return name == option; };
        if ((is("--help") || is("-h") || is("--explain")) && equals == std::string_view::npos) {
            (is("--explain") ? result.explain : result.help) = true;
            continue;
        }
        if (!(is("--preset") || is("--epochs") || is("--seed") || is("--report") || is("--data") ||
              is("--threads"))) {
            throw user_error("unknown option '" + std::string(name) + "'; --help lists them");
        }
        if (equals == std::string_view::npos && i + 1 == arguments.size()) {
            throw user_error(std::string(name) + " needs a value");
        }
        const std::string_view value =
            equals == std::string_view::npos ? arguments[++i] : argument.substr(equals + 1);
        if (is("--preset")) {
            add_presets(name, value, result.presets);
        } else if (is("--epochs")) {
            result.epochs = parse_integer(name, value, 1, 10000);
        } else if (is("--seed")) {
            result.seed = parse_integer(name, value, std::uint64_t{0}, std::uint64_t{1'000'000'000'000});
        } else if (is("--threads")) {
            result.threads = parse_integer(name, value, 1, 1024);
        } else {
            if (value.empty()) throw user_error(std::string(name) + " needs the name of a file");
            (is("--report") ? result.report : result.data) = value;
        }
    }
    return result;
}

}  // namespace examples::train_convolution
