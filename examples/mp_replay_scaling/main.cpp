// SPDX-License-Identifier: MIT
/// \file
/// Compares loss scalers on the gradients of a recorded run, before any training.
#include <mp/frontends/report/replay_page.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "../common/replace_file.hpp"
#include "options.hpp"
#include "policies.hpp"
#include "synthetic.hpp"

namespace replay_scaling { namespace {

std::vector<mp::trace_step> trace_in(const std::string& path) {
    std::error_code ignored;
    std::ifstream file(path, std::ios::binary);
    if (!file || std::filesystem::is_directory(path, ignored))
        throw user_error("cannot read " + detail::quoted(path));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (file.bad()) throw user_error("cannot read " + detail::quoted(path));
    try {
        std::vector<mp::trace_step> trace = mp::read_trace_csv(text);
        if (trace.empty()) throw user_error(detail::quoted(path) + " has no steps");
        return trace;
    } catch (const mp::argument_error& problem) {
        throw user_error(detail::quoted(path) + " is no trace: " + problem.what());
    }
}

/// Throws user_error if the file cannot be written; what is in it stays.
void require_writable(const std::string& path) {
    if (!examples::can_replace_file(path)) throw user_error("cannot write to " + detail::quoted(path));
}

void write(const std::string& path, const std::string& text) {
    if (!examples::replace_file(path, text))
        throw std::runtime_error("cannot write to " + detail::quoted(path));
}

int run(const std::vector<std::string_view>& arguments) {
    std::vector<std::string_view> policies;
    std::vector<std::string_view> formats;
    for (const policy_entry& it : all_policies) policies.push_back(it.name);
    for (const format_entry& it : all_formats) formats.push_back(it.name);
    const options chosen = parse_options(arguments, policies, formats);
    if (chosen.help) {
        std::string text = std::string(usage) + "Formats: " + detail::listed(formats) + "\n\nPolicies:\n";
        for (const policy_entry& it : all_policies) {
            text += "  " + std::string(it.name) + std::string(17 - it.name.size(), ' ') +
                    std::string(it.about) + "\n";
        }
        std::fputs(text.c_str(), stdout);
        return 0;
    }
    require_writable(chosen.html);
    if (!chosen.save_trace.empty()) require_writable(chosen.save_trace);
    constexpr std::size_t made_up_steps = 20000;
    const bool made_up = chosen.trace.empty();
    const std::vector<mp::trace_step> trace = made_up ? made_up_trace(made_up_steps) : trace_in(chosen.trace);

    const auto format = *std::find_if(all_formats.begin(), all_formats.end(),
                                      [&](const format_entry& it) { return it.name == chosen.format; });
    std::vector<mp::replay_result> results;
    for (const policy_entry& it : all_policies) {
        const auto& names = chosen.policies;
        if (!names.empty() && std::find(names.begin(), names.end(), it.name) == names.end()) continue;
        results.push_back(it.replay(trace, it.name, format.range));
    }

    std::string note =
        (made_up ? std::string("No trace was given, so this is a made-up one: ") : chosen.trace + ": ") +
        std::to_string(trace.size()) + (trace.size() == 1 ? " step" : " steps") + ", gradients in " +
        chosen.format + ".";
    const auto bounds =
        std::count_if(trace.begin(), trace.end(), [](const auto& step) { return step.at_least; });
    if (bounds != 0) {
        note += " In " + std::to_string(bounds) +
                " of them the recorded run overflowed; the magnitudes there are the least possible.";
    }
    const std::string table = mp::replay_table(results);
    write(chosen.html, mp::replay_page(results, "Loss scales in replay", note));
    if (!chosen.save_trace.empty()) write(chosen.save_trace, mp::write_trace_csv(trace));
    std::printf("%s\n\n%s\nThe picture is in %s\n", note.c_str(), table.c_str(), chosen.html.c_str());
    if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the output");
    return 0;
}

}  // namespace
}  // namespace replay_scaling

int main(int argc, char** argv) {
    try {
        return replay_scaling::run(std::vector<std::string_view>(argv + 1, argv + argc));
    } catch (const replay_scaling::user_error& problem) {
        std::fprintf(stderr, "mp-replay-scaling: %s\n", problem.what());
        return 2;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "mp-replay-scaling: %s\n", problem.what());
        return 1;
    }
}
