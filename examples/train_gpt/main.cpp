// SPDX-License-Identifier: MIT
/// \file
/// Trains a GPT on the characters of a text, in several precisions.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../common/page.hpp"
#include "../common/progress.hpp"
#include "../common/table.hpp"
#include "mpi.hpp"
#include "options.hpp"
#include "report.hpp"
#include "training.hpp"

namespace examples::train_gpt {
namespace {

/// Trains and, on rank 0, says what came out.
void train_and_tell(options chosen, mp::any_communicator& ranks) {
    const bool tells = ranks.rank() == 0;
    chosen.task.ranks = &ranks;
    const corpus text(read_text(chosen.text), chosen.task.sizes.context);
    training_task& task = chosen.task;
    task.text = &text;
    task.sizes.vocabulary = static_cast<std::ptrdiff_t>(text.characters.size());
    std::optional<report_file> page;
    if (tells && !chosen.report.empty()) page.emplace(chosen.report);
    if (tells) {
        std::printf("%zu characters to train on, %zu kinds of them\n", text.training.size(),
                    text.characters.size());
        std::fflush(stdout);
    }

    std::vector<result> results;
    {
        const std::uint64_t steps = task.stop_after == 0 ? task.steps : std::min(task.steps, task.stop_after);
        std::optional<progress> bar;
        if (tells) bar.emplace(stderr, isatty(STDERR_FILENO) != 0, chosen.recipes.size() * steps);
        for (const std::string& name : chosen.recipes) {
            for (const recipe& it : all_recipes()) {
                if (it.name != name) continue;
                training_task one = task;
                if (!one.checkpoint.empty()) one.checkpoint += "." + name;
                one.after_step = [&](const std::string& what) {
                    if (bar) bar->advance(name + "  " + what);
                };
                results.push_back({&it, it.train(one)});
            }
        }
    }
    if (!tells) return;
    std::printf("%zu parameters\n\n%s\n%s\n", results.front().record.parameters,
                to_text(learning_table(results)).c_str(), to_text(memory_table(results)).c_str());
    for (const result& it : results) {
        std::printf("%s, %s, writes:\n%s\n\n", std::string(it.by->name).c_str(),
                    std::string(it.by->meaning).c_str(), it.record.sample.c_str());
    }
    if (page) {
        page->write(report_page(results, task));
        std::printf("The plots are in %s\n", chosen.report.c_str());
    }
}

int run(std::span<const std::string_view> arguments) {
    options defaults;
    defaults.text = MP_EXAMPLE_DATA_DIR "/../../include/mp";
    const options chosen = parse_options(arguments, defaults);
    if (chosen.help) {
        std::fputs(std::string(usage).c_str(), stdout);
        return 0;
    }
    if (chosen.ranks == 0) {
        run_on_mpi([&](mp::any_communicator& ranks) { train_and_tell(chosen, ranks); });
    } else if (chosen.ranks == 1) {
        mp::single_rank alone;
        mp::any_communicator ranks(alone);
        train_and_tell(chosen, ranks);
    } else {
        mp::run_loopback(chosen.ranks, [&](mp::loopback_communicator& thread) {
            mp::any_communicator ranks(thread);
            train_and_tell(chosen, ranks);
        });
    }
    return 0;
}

}  // namespace
}  // namespace examples::train_gpt

int main(int argc, char** argv) {
    try {
        return examples::train_gpt::run(std::vector<std::string_view>(argv + 1, argv + argc));
    } catch (const examples::user_error& problem) {
        std::fprintf(stderr, "train_gpt: %s\n", problem.what());
        return 2;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "train_gpt: %s\n", problem.what());
        return 1;
    }
}
