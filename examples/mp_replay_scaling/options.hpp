// SPDX-License-Identifier: MIT
/// \file
/// The command line.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace replay_scaling {

/// Something that the user can mend, such as a wrong option or a broken file. The program prints the message
/// in one line and ends with exit code 2.
class user_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// What the user asks for.
struct options {
    bool help = false;
    std::string trace;                  ///< a file; empty for a made-up trace
    std::vector<std::string> policies;  ///< names; none means all
    std::string format = "half";
    std::string html = "replay_scaling.html";
    std::string save_trace;  ///< a file to write the trace to; empty for none
};

inline constexpr std::string_view usage = R"(usage: mp-replay-scaling [TRACE.csv] [options]

Shows what loss scalers would have made of the gradients of a training run: how often they would have skipped a step,
where the scale would have been, and how many values would have been lost to zero. Prints a table, and draws the
scales on a page for the browser. Without a trace one is made up, always the same.

A trace is a table with a line for each step, as mp::trace_recorder makes it in a run:

    largest,at_least,infinite,nan,zeros,exponents
    0.0123,0,0,0,512,-20:7 -19:130 -7:1

largest is the largest magnitude of the gradients without a scale; all other columns may be left out. at_least is 1
if the run overflowed there, infinite and nan if no scale would have helped; zeros and exponents count the values by
their exponents, and are needed to know about underflow.

  --policies LIST    only these policies, for example pytorch,deepspeed (all of them)
  --format NAME      the format that the gradients are to have (half)
  --html FILE        where the page goes (replay_scaling.html)
  --save-trace FILE  writes the trace as a table
  --help             this text

)";

namespace detail {

inline std::string quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text) result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    return result + "'";
}

inline std::string listed(std::span<const std::string_view> names) {
    std::string text;
    for (const std::string_view name : names) text.append(text.empty() ? "" : " ").append(name);
    return text;
}

inline void require_known(std::string_view option, std::string_view name,
                          std::span<const std::string_view> known) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
        throw user_error(std::string(option) + " is " + quoted(name) + "; it must be one of " +
                         listed(known));
    }
}

/// Adds the names of a list with commas, each once.
inline void add_names(std::string_view option, std::string_view list, std::span<const std::string_view> known,
                      std::vector<std::string>& to) {
    for (bool more = true; more;) {
        const std::size_t comma = list.find(',');
        const std::string_view name = list.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) list.remove_prefix(comma + 1);
        require_known(option, name, known);
        if (std::find(to.begin(), to.end(), name) == to.end()) to.emplace_back(name);
    }
}

}  // namespace detail

/// Reads the arguments without the program's name: "--option value" or "--option=value", and at most one name
/// of a file. Throws user_error for anything that it does not understand.
inline options parse_options(std::span<const std::string_view> arguments,
                             std::span<const std::string_view> policies,
                             std::span<const std::string_view> formats) {
    options result;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--help" || argument == "-h") {
            result.help = true;
            continue;
        }
        if (!argument.starts_with('-')) {
            if (argument.empty()) throw user_error("the name of the trace is empty");
            if (!result.trace.empty()) {
                throw user_error("there are two traces, " + detail::quoted(result.trace) + " and " +
                                 detail::quoted(argument) + "; give one");
            }
            result.trace = argument;
            continue;
        }
        const std::size_t equals = argument.find('=');
        const std::string_view name = argument.substr(0, equals);
        if (name != "--policies" && name != "--format" && name != "--html" && name != "--save-trace") {
            throw user_error("unknown option " + detail::quoted(name) + "; --help lists them");
        }
        if (equals == std::string_view::npos && i + 1 == arguments.size()) {
            throw user_error(std::string(name) + " needs a value");
        }
        const std::string_view value =
            equals == std::string_view::npos ? arguments[++i] : argument.substr(equals + 1);
        if (name == "--policies") {
            detail::add_names(name, value, policies, result.policies);
        } else if (name == "--format") {
            detail::require_known(name, value, formats);
            result.format = value;
        } else {
            if (value.empty()) throw user_error(std::string(name) + " needs the name of a file");
            (name == "--html" ? result.html : result.save_trace) = value;
        }
    }
    return result;
}

}  // namespace replay_scaling
