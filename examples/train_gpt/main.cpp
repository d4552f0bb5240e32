// SPDX-License-Identifier: MIT
/// \file
/// Trains a GPT on the characters of a text, in several precisions.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iomanip>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../common/page.hpp"
#include "../common/progress.hpp"
#include "../common/replace_file.hpp"
#include "../common/table.hpp"
#include "mpi.hpp"
#include "options.hpp"
#include "report.hpp"
#include "retries.hpp"
#include "training.hpp"

namespace examples::train_gpt { namespace {

/// The recipes that are to be trained, of those of the device.
std::vector<const recipe*> recipes_of(const options& chosen, std::span<const recipe> device) {
    std::vector<const recipe*> found;
    const auto find = [&](std::string_view name) {
        return std::find_if(device.begin(), device.end(),
                            [name](const recipe& it) { return it.name == name; });
    };
    if (chosen.recipes.empty()) {
        const auto usual = find("bf16");
        return {usual == device.end() ? &device.front() : &*usual};
    }
    for (const std::string& name : chosen.recipes) {
        if (const auto it = find(name); it != device.end()) {
            found.push_back(&*it);
        } else if (!chosen.all) {
            std::string names;
            for (const recipe& one : device) names.append(" ").append(one.name);
            throw user_error("--recipe is '" + name + "'; on this device it must be one of" + names);
        }
    }
    return found;
}

/// Writes what happened in each step.
void write_losses(const std::string& path, const std::vector<result>& results) {
    std::ostringstream file;
    file << "recipe,step of this run,nats,scale\n" << std::setprecision(17);
    for (const result& it : results) {
        const training_record& r = it.record;
        for (std::size_t i = 0; i < r.losses.size(); ++i) {
            file << it.by->name << ',' << i << ',' << r.losses[i] << ',' << r.scales[i] << '\n';
        }
    }
    if (!replace_file(path, file.str())) throw user_error("cannot write the losses to '" + path + "'");
}

/// Trains and, on rank 0, says what came out.
void train_and_tell(options chosen, const gpu& device, mp::any_communicator& ranks) {
    const bool tells = ranks.rank() == 0;
    if (ranks.size() > 1) device.choose(ranks.rank());
    const std::vector<const recipe*> recipes = recipes_of(chosen, device.recipes);
    chosen.task.ranks = &ranks;
    const corpus text(read_text(chosen.text), chosen.task.sizes.context);
    training_task& task = chosen.task;
    task.text = &text;
    task.sizes.vocabulary = static_cast<std::ptrdiff_t>(text.characters.size());
    std::optional<report_file> page;
    if (tells && !chosen.report.empty()) page.emplace(chosen.report);
    if (tells) {
        if (!device.name.empty()) std::printf("On %s\n", device.name.c_str());
        std::printf("%zu characters to train on, %zu kinds of them\n", text.training.size(),
                    text.characters.size());
        std::fflush(stdout);
    }

    std::vector<result> results;
    {
        const std::uint64_t steps = task.stop_after == 0 ? task.steps : std::min(task.steps, task.stop_after);
        std::optional<progress> bar;
        if (tells) bar.emplace(stderr, isatty(STDERR_FILENO) != 0, recipes.size() * steps);
        for (const recipe* const it : recipes) {
            const std::string name(it->name);
            training_task one = task;
            if (!one.checkpoint.empty()) one.checkpoint += "." + name;
            if (!one.weights.empty()) one.weights += "." + name;
            one.after_step = [&](const std::string& what) {
                if (bar) bar->advance(name + "  " + what);
            };
            results.push_back({it, it->train(one)});
        }
    }
    if (!tells) return;
    std::printf("%zu parameters\n\n%s\n%s\n", results.front().record.parameters,
                to_text(learning_table(results)).c_str(), to_text(memory_table(results)).c_str());
    for (const result& it : results) {
        std::printf("%s, %s, writes:\n%s\n\n", std::string(it.by->name).c_str(),
                    std::string(it.by->meaning).c_str(), it.record.sample.c_str());
    }
    if (!chosen.losses.empty()) write_losses(chosen.losses, results);
    if (page) {
        page->write(report_page(results, task));
        std::printf("The plots are in %s\n", chosen.report.c_str());
    }
}

int run(const std::string& program, std::span<const std::string_view> arguments) {
    options defaults;
    defaults.text = MP_EXAMPLE_DATA_DIR "/../../include/mp";
    const options chosen = parse_options(arguments, defaults);
    if (chosen.help) {
        std::fputs(std::string(usage).c_str(), stdout);
        return 0;
    }
    if (chosen.retries != 0) {
        return run_with_retries(command_of_try(program, arguments, chosen.launch), chosen.retries);
    }
    const std::chrono::seconds timeout(chosen.rank_timeout);
    gpu device{"", all_recipes()};
    if (chosen.device == train_gpt::device::cuda) device = find_cuda_device();
    if (chosen.device == train_gpt::device::simulated) device = simulated_gpu();
    if (chosen.ranks == 0) {
        run_on_mpi(chosen.device == train_gpt::device::cuda, timeout,
                   [&](mp::any_communicator& ranks) { train_and_tell(chosen, device, ranks); });
    } else if (chosen.ranks == 1) {
        mp::single_rank alone;
        mp::any_communicator ranks(alone);
        train_and_tell(chosen, device, ranks);
    } else {
        const auto train = [&](mp::loopback_communicator& thread) {
            mp::any_communicator ranks(thread);
            train_and_tell(chosen, device, ranks);
        };
        mp::run_loopback(chosen.ranks, train, timeout);
    }
    return 0;
}

}  // namespace
}  // namespace examples::train_gpt

int main(int argc, char** argv) {
    try {
        return examples::train_gpt::run(argv[0], std::vector<std::string_view>(argv + 1, argv + argc));
    } catch (const examples::user_error& problem) {
        std::fprintf(stderr, "train_gpt: %s\n", problem.what());
        return 2;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "train_gpt: %s\n", problem.what());
        return 1;
    }
}
