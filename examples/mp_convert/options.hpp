// SPDX-License-Identifier: MIT
/// \file
/// The command line.
#pragma once

#include <mp/nn/autocast/name_pattern.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../common/arguments.hpp"
#include "../common/user_error.hpp"

namespace mp_convert {

using examples::user_error;

inline constexpr std::string_view usage = R"(usage: mp-convert MODEL.safetensors --to FORMAT [options]

Converts the weights of a model, tensor by tensor, to a smaller format, and says what was lost. The model is mapped
into memory and the result is written piece by piece, so both may be larger than memory.

  --to FORMAT        half, bfloat16, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, mxfp8_e4m3 (or mxfp8),
                     mxfp8_e5m2, mxfp6_e2m3 (or mxfp6), mxfp6_e3m2, mxfp4, nvfp4
  --output FILE      where to; MODEL.FORMAT.safetensors else
  --include PATTERN  convert only tensors whose name matches, such as '*.mlp.*'; may be there more than once
  --exclude PATTERN  keep tensors whose name matches, such as 'lm_head*'; may be there more than once
  --all              convert also tensors of one dimension: norms and biases, which are kept else
  --layout LAYOUT    of block formats: typed (the default: NAME has codes as F4, F6_E2M3, F8_E4M3 ..., NAME_scale the
                     scales of blocks, and NAME_scale_2 that of an nvfp4 tensor), bytes (the same as U8, packed, but for
                     scales of F8_E4M3), or gpt-oss (mxfp4 as NAME_blocks and NAME_scales)
  --report[=FILE]    the losses of every tensor as a table, and as a page in FILE; beside the output else
  --dry-run          writes no model
  --threads N        the number of processors else
  --help             this text

Values are rounded to nearest even, and what is too large becomes the largest number. Blocks go along the last
dimension; tensors for which it is no multiple of the block are kept, and so is what is not of floating point.
)";

enum class layout { typed, bytes, gpt_oss };

/// What the user asks for.
struct options {
    bool help = false;
    bool all = false;
    bool report = false;
    bool dry_run = false;
    std::string model;
    std::string format;
    std::string output;
    std::string page;
    std::vector<std::string> include;
    std::vector<std::string> exclude;
    layout arrangement = layout::typed;
    int threads = 1;

    [[nodiscard]] bool wants(std::string_view name) const {
        const auto matches = [&](const std::string& pattern) {
            return mp::autocast::matches_pattern(pattern, name);
        };
        return (include.empty() || std::any_of(include.begin(), include.end(), matches)) &&
               std::none_of(exclude.begin(), exclude.end(), matches);
    }
};

/// The path without ".safetensors", with something else behind it.
inline std::string path_beside(std::string path, std::string_view end) {
    constexpr std::string_view known = ".safetensors";
    if (path.ends_with(known)) path.resize(path.size() - known.size());
    return path.append(end);
}

inline options parse(int count, char** arguments) {
    options result;
    result.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (!argument.starts_with("--") && argument != "-h") {
            if (!result.model.empty())
                throw user_error("unexpected argument '" + std::string(argument) + "'");
            result.model = argument;
            continue;
        }
        const examples::command_line_option option(i, count, arguments);
        const std::string& name = option.name();
        bool* const flag = name == "--help"      ? &result.help
                           : name == "--all"     ? &result.all
                           : name == "--dry-run" ? &result.dry_run
                                                 : nullptr;
        if (flag != nullptr) {
            option.set(*flag);
        } else if (name == "--report") {
            result.report = true;
            result.page = option.joined_value();
        } else if (name == "--to") {
            result.format = option.value();
        } else if (name == "--output") {
            result.output = option.value();
        } else if (name == "--include") {
            result.include.push_back(option.value());
        } else if (name == "--exclude") {
            result.exclude.push_back(option.value());
        } else if (name == "--threads") {
            result.threads = examples::parse_integer<int>(name, option.value(), 1, 1024);
        } else if (name == "--layout") {
            const std::string text = option.value();
            if (text != "typed" && text != "bytes" && text != "gpt-oss") {
                throw user_error("--layout is '" + text + "'; it must be one of typed bytes gpt-oss");
            }
            result.arrangement = text == "typed"   ? layout::typed
                                 : text == "bytes" ? layout::bytes
                                                   : layout::gpt_oss;
        } else {
            throw user_error("unknown option '" + name + "'; see --help");
        }
    }
    if (result.help) return result;
    if (result.model.empty()) throw user_error("no MODEL; see --help");
    if (result.format.empty()) throw user_error("no --to FORMAT; see --help");
    if (result.format == "mxfp8") result.format = "mxfp8_e4m3";
    if (result.format == "mxfp6") result.format = "mxfp6_e2m3";
    if (result.arrangement == layout::gpt_oss && result.format != "mxfp4") {
        throw user_error("--layout gpt-oss is for mxfp4");
    }
    if (result.output.empty()) {
        result.output = path_beside(result.model, "." + result.format + ".safetensors");
    }
    if (result.report && result.page.empty()) result.page = path_beside(result.output, ".html");
    return result;
}

}  // namespace mp_convert
