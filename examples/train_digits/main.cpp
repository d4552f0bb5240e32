// SPDX-License-Identifier: MIT
/// \file
/// Trains a small network on scanned digits in several recipes of mixed precision, side by side.
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
#include "../common/preset_names.hpp"
#include "../common/progress.hpp"
#include "findings.hpp"
#include "options.hpp"
#include "recipes.hpp"
#include "report.hpp"
#include "summary.hpp"
#include "table.hpp"

namespace examples::train_digits { namespace {

/// \param recipes  those of the device
std::vector<const recipe*> chosen_recipes(const options& chosen, std::span<const recipe> recipes) {
    std::vector<const recipe*> result;
    for (const recipe& it : recipes) {
        const auto& names = chosen.recipes;
        if (names.empty() || std::find(names.begin(), names.end(), it.name) != names.end()) {
            result.push_back(&it);
        }
    }
    for (const recipe& it : preset_recipes()) {
        const auto is_it = [&](const std::string& preset) { return "preset-" + preset == it.name; };
        if (std::any_of(chosen.presets.begin(), chosen.presets.end(), is_it)) result.push_back(&it);
    }
    return result;
}

std::vector<setting_summary> run_trainings(const options& chosen, const std::optional<gpu>& on_gpu,
                                           const split_digits& data) {
    const std::vector<double> weights =
        chosen.loss_weight ? std::vector{*chosen.loss_weight} : std::vector{1.0, 0x1p-14, 0x1p-16};
    const std::vector<const recipe*> recipes =
        chosen_recipes(chosen, on_gpu ? on_gpu->recipes : all_recipes());
    const auto repeats = static_cast<std::size_t>(chosen.repeats);
    const std::size_t jobs = weights.size() * recipes.size() * repeats;
    std::vector<training_record> records(jobs);
    {
        progress bar(stderr, isatty(STDERR_FILENO) != 0, jobs * static_cast<std::size_t>(chosen.epochs));
        run_jobs(on_gpu ? 1 : chosen.threads, jobs, [&](std::size_t job) {
            const std::size_t repeat = job % repeats;
            const recipe& it = *recipes[job / repeats % recipes.size()];
            const double weight = weights[job / repeats / recipes.size()];
            const std::string what = "loss weight " + power_text(weight) + ", " + std::string(it.title);
            records[job] = it.train({.data = &data,
                                     .epochs = chosen.epochs,
                                     .seed = chosen.seed + repeat,
                                     .loss_weight = weight,
                                     .after_epoch = [&] { bar.advance(what); }});
        });
    }
    std::vector<setting_summary> settings;
    auto record = records.begin();
    for (const double weight : weights) {
        setting_summary setting{weight, chosen.seed, {}, on_gpu ? on_gpu->name : ""};
        for (const recipe* it : recipes) {
            const auto end = record + static_cast<std::ptrdiff_t>(repeats);
            setting.recipes.emplace_back(*it, std::vector<training_record>(record, end));
            record = end;
        }
        settings.push_back(std::move(setting));
    }
    return settings;
}

constexpr std::size_t line_width = 110;

void print(const setting_summary& setting) {
    std::string text = setting_title(setting) + "\n\n" + to_text(results_table(setting, false)) + "\n";
    for (const std::string& sentence : findings(setting)) text += wrapped(sentence, "* ", line_width);
    std::puts(text.c_str());
}

/// What holds for all settings.
void print_notes(const setting_summary& setting) {
    std::string text;
    for (const std::string& sentence : general_findings(setting)) text += wrapped(sentence, "* ", line_width);
    if (!text.empty()) text += "\n";
    text += "The columns\n";
    for (const std::string& note : table_notes(setting)) text += wrapped(note, "  ", line_width);
    std::puts(text.c_str());
}

int run(std::span<const std::string_view> arguments) {
    std::vector<std::string_view> names;
    for (const recipe& it : all_recipes()) names.push_back(it.name);
    options defaults;
    defaults.data = MP_EXAMPLE_DATA_DIR "/digits.csv";
    defaults.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const options chosen = parse_options(arguments, names, defaults);
    if (chosen.help) {
        std::string text(usage);
        for (const std::string_view name : names) text.append(name).append(name == names.back() ? "" : ", ");
        text += "\n" + wrapped(joined(preset_names()), "Presets: ", line_width);
        std::fputs(text.c_str(), stdout);
        return 0;
    }
    const std::optional<gpu> on_gpu =
        chosen.device == device::cuda ? std::optional(find_cuda_device()) : std::nullopt;
    const split_digits data = split(read_digits(chosen.data), batch_size);
    report_file page(chosen.report);

    std::printf(
        "%zu scanned digits to train on, %zu to test with; linear layers %s with relu;\n"
        "SGD with momentum %g, learning rate %g, batch %zu, %d epochs%s\n\n",
        data.training.size(), data.test.size(), network_text().c_str(), momentum, base_learning_rate,
        batch_size, chosen.epochs, on_gpu ? (", on " + on_gpu->name).c_str() : "");
    std::fflush(stdout);
    const std::vector<setting_summary> settings = run_trainings(chosen, on_gpu, data);
    for (const setting_summary& setting : settings) print(setting);
    print_notes(settings.front());
    page.write(report_page(settings));
    std::printf("The plots are in %s\n", chosen.report.c_str());
    return 0;
}

}  // namespace
}  // namespace examples::train_digits

int main(int argc, char** argv) {
    try {
        return examples::train_digits::run(std::vector<std::string_view>(argv + 1, argv + argc));
    } catch (const examples::user_error& problem) {
        std::fprintf(stderr, "train_digits: %s\n", problem.what());
        return 2;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "train_digits: %s\n", problem.what());
        return 1;
    }
}
