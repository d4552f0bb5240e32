// SPDX-License-Identifier: MIT
/// \file
/// The command line.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../common/arguments.hpp"
#include "../common/preset_names.hpp"

namespace examples::train_digits {

/// Where the trainings run.
enum class device { cpu, cuda };

/// What the user asks for.
struct options {
    bool help = false;
    train_digits::device device = train_digits::device::cpu;
    std::vector<std::string> recipes;  ///< names; none means all
    std::vector<std::string> presets;  ///< names of presets that are trained as well; none means none
    int epochs = 30;
    int repeats = 6;  ///< trainings of each recipe, with seeds seed, seed + 1, ...
    std::uint64_t seed = 1;
    std::optional<double> loss_weight;  ///< none means all settings: 1, 2^-14 and 2^-16
    std::string report = "train_digits.html";
    std::string data;
    int threads = 2;
};

inline constexpr std::string_view usage = R"(usage: train_digits [options]

Trains a small network on scanned digits in several recipes of mixed precision, side by side, prints what
became of them, and draws it on a page for the browser. The same seed gives the same numbers.

  --recipe NAME      train only this recipe; may be repeated, or be a list: fp32,fp16 (all of them)
  --preset NAME      train under this preset of autocast as well, with weights and activations in float; may
                     be repeated or a list, and "all" means all of them (none)
  --device NAME      cpu, or cuda: the current CUDA device, where this program was built with CUDA (cpu)
  --epochs N         passes over the training set (30)
  --seed N           seed of the first training (1)
  --repeats N        trainings of each recipe, with seeds that count up; the tables show their mean (6)
  --loss-weight W    what the loss is multiplied by; the learning rate is divided by it. A number such as
                     0.001 or 2^-14. Without it 1, 2^-14 and 2^-16 are run
  --report FILE      where the page goes (train_digits.html)
  --data FILE        the digits: 64 pixels from 0 to 16 and the digit in each line
  --threads N        trainings that run at a time, on a GPU always one; the results do not depend on it
  --help             this text

Recipes: )";

namespace detail {

inline device parse_device(std::string_view option, std::string_view text) {
    if (text == "cpu") return device::cpu;
    if (text == "cuda") return device::cuda;
    throw user_error(std::string(option) + " is '" + std::string(text) + "'; it must be cpu or cuda");
}

/// A positive number, or a power of two such as 2^-14.
inline double parse_weight(std::string_view option, std::string_view text) {
    std::optional<double> value;
    if (text.starts_with("2^")) {
        const auto exponent = parse_number<int>(text.substr(2));
        if (exponent && std::abs(*exponent) <= 100) value = std::ldexp(1.0, *exponent);
    } else {
        value = parse_number<double>(text);
    }
    if (!value || !(*value >= 0x1p-24 && *value <= 0x1p24)) {
        throw user_error(std::string(option) + " is '" + std::string(text) +
                         "'; it must be a number from 2^-24 to 2^24");
    }
    return *value;
}

}  // namespace detail

/// Reads the arguments without the program's name: "--option value" or "--option=value". `known_recipes` are
/// the names that --recipe takes. Throws user_error for anything that it does not understand.
inline options parse_options(std::span<const std::string_view> arguments,
                             std::span<const std::string_view> known_recipes, options defaults = {}) {
    options result = std::move(defaults);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        const std::size_t equals = argument.find('=');
        const std::string_view name = argument.substr(0, equals);
        const auto is = [&](std::string_view option) { return name == option; };
        if (is("--help") || is("-h")) {
            result.help = true;
            continue;
        }
        if (!(is("--recipe") || is("--preset") || is("--device") || is("--epochs") || is("--repeats") ||
              is("--seed") || is("--loss-weight") || is("--report") || is("--data") || is("--threads"))) {
            throw user_error("unknown option '" + std::string(name) + "'; --help lists them");
        }
        if (equals == std::string_view::npos && i + 1 == arguments.size()) {
            throw user_error(std::string(name) + " needs a value");
        }
        const std::string_view value =
            equals == std::string_view::npos ? arguments[++i] : argument.substr(equals + 1);
        if (is("--recipe")) {
            add_names(name, value, known_recipes, result.recipes);
        } else if (is("--preset")) {
            add_presets(name, value, result.presets);
        } else if (is("--device")) {
            result.device = detail::parse_device(name, value);
        } else if (is("--epochs")) {
            result.epochs = parse_integer(name, value, 1, 10000);
        } else if (is("--repeats")) {
            result.repeats = parse_integer(name, value, 1, 1000);
        } else if (is("--seed")) {
            result.seed = parse_integer(name, value, std::uint64_t{0}, std::uint64_t{1'000'000'000'000});
        } else if (is("--loss-weight")) {
            result.loss_weight = detail::parse_weight(name, value);
        } else if (is("--threads")) {
            result.threads = parse_integer(name, value, 1, 1024);
        } else {
            if (value.empty()) throw user_error(std::string(name) + " needs the name of a file");
            (is("--report") ? result.report : result.data) = value;
        }
    }
    if (result.device != device::cpu && !result.presets.empty() && !result.help) {
        throw user_error("--preset is for --device cpu: on a GPU no autocast takes part");
    }
    return result;
}

}  // namespace examples::train_digits
