// SPDX-License-Identifier: MIT
/// \file
/// Trains a small convolutional network on scanned digits under every preset of autocast.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../common/data.hpp"
#include "../common/jobs.hpp"
#include "../common/page.hpp"
#include "../common/progress.hpp"
#include "../common/table.hpp"
#include "options.hpp"
#include "report.hpp"
#include "results.hpp"
#include "training.hpp"

namespace examples::train_convolution { namespace {

constexpr std::size_t line_width = 110;

std::vector<result> chosen_presets(const options& chosen) {
    std::vector<result> results;
    for (const mp::autocast::preset* it : mp::autocast::presets::all) {
        const auto& names = chosen.presets;
        if (names.empty() || std::find(names.begin(), names.end(), it->name) != names.end()) {
            results.push_back({it, {}});
        }
    }
    return results;
}

void print_explanations(const std::vector<result>& results) {
    std::string text;
    for (const result& it : results) {
        text += (text.empty() ? "" : "\n") + std::string(it.preset->name) + ", " +
                std::string(it.preset->meaning) + "\n";
        for (const std::string& line : explain(*it.preset)) text += wrapped(line, "  ", line_width);
    }
    std::fputs(text.c_str(), stdout);
}

void run_trainings(std::vector<result>& results, const training_task& task, int threads) {
    progress bar(stderr, isatty(STDERR_FILENO) != 0, results.size() * static_cast<std::size_t>(task.epochs));
    run_jobs(threads, results.size(), [&](std::size_t job) {
        const mp::autocast::preset& preset = *results[job].preset;
        training_task one = task;
        one.after_epoch = [&] { bar.advance(preset.name); };
        results[job].record = train(preset, one);
    });
}

void print(const std::vector<result>& results) {
    std::string text = to_text(results_table(results)) + "\n";
    for (const std::string& sentence : findings(results)) text += wrapped(sentence, "* ", line_width);
    text += "\nThe columns\n";
    for (const std::string& note : table_notes(results)) text += wrapped(note, "  ", line_width);
    std::fputs(text.c_str(), stdout);
}

int run(std::span<const std::string_view> arguments) {
    options defaults;
    defaults.data = MP_EXAMPLE_DATA_DIR "/digits.csv";
    defaults.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const options chosen = parse_options(arguments, defaults);
    if (chosen.help) {
        const std::string text =
            std::string(usage) + wrapped(joined(preset_names()), "Presets: ", line_width);
        std::fputs(text.c_str(), stdout);
        return 0;
    }
    std::vector<result> results = chosen_presets(chosen);
    if (chosen.explain) {
        print_explanations(results);
        return 0;
    }
    const split_digits data = split(read_digits(chosen.data), batch_size);
    std::optional<report_file> page;
    if (!chosen.report.empty()) page.emplace(chosen.report);

    const training_task task{.data = &data, .epochs = chosen.epochs, .seed = chosen.seed};
    std::printf(
        "%zu scanned digits to train on, %zu to test with; two convolutions, layer normalization and a "
        "linear\n"
        "layer; SGD with momentum %g, learning rate %g, batch %zu, %d epochs\n\n",
        data.training.size(), data.test.size(), momentum, learning_rate, batch_size, chosen.epochs);
    std::fflush(stdout);
    run_trainings(results, task, chosen.threads);
    print(results);
    if (page) {
        page->write(report_page(results, task));
        std::printf("\nThe plots are in %s\n", chosen.report.c_str());
    }
    return 0;
}

}  // namespace
}  // namespace examples::train_convolution

int main(int argc, char** argv) {
    try {
        return examples::train_convolution::run(std::vector<std::string_view>(argv + 1, argv + argc));
    } catch (const examples::user_error& problem) {
        std::fprintf(stderr, "train_convolution: %s\n", problem.what());
        return 2;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "train_convolution: %s\n", problem.what());
        return 1;
    }
}
