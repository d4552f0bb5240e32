// SPDX-License-Identifier: MIT
/// \file
/// The command line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../common/arguments.hpp"
#include "training.hpp"

namespace examples::train_gpt {

enum class device { cpu, cuda, simulated };

/// What the user asks for.
struct options {
    bool help = false;
    std::vector<std::string> recipes;  ///< names; none means bf16, or the first where there is no bf16
    bool all = false;                  ///< those of the device
    std::string text;                  ///< file or folder
    std::string report;                ///< file; empty means none
    std::string losses;                ///< file, likewise
    train_gpt::device device = train_gpt::device::cpu;
    int ranks = 1;           ///< threads; 0 for the processes of MPI
    int rank_timeout = 600;  ///< seconds
    int retries = 0;
    std::string launch;  ///< the command that starts the processes of MPI, for retries
    training_task task;
};

inline constexpr std::string_view usage = R"(usage: train_gpt [options]

Trains a GPT on the characters of a text, by default of this library's own headers, in one or several
precisions, and writes in its style. The same seed gives the same bits on any number of threads, also when the
run was killed and resumed.

  --recipe LIST       fp32, amp_bf16, amp_fp16, bf16, fp16, fp16_alone, fp8, mxfp8, several with commas between, or
                      all (bf16)
  --device NAME       cpu; cuda: the current CUDA device, where this program was built with CUDA; simulated: a GPU
                      that the host plays, slowly, for amp_fp16, fp8 and mxfp8 (cpu)
  --text PATH         a file, or a folder whose headers are read (the headers of mp)
  --size NAME         tiny: 4 layers, 128 wide, context 128; small: 6, 384, 256; gpt2: 12, 768, 1024 (tiny)
  --layers N --width N --heads N --context N   one by one
  --steps N           of the whole training, which the learning rate goes by (400)
  --batch N           sequences of a micro batch (16)
  --accumulate N      micro batches of a step (1)
  --learning-rate X   largest of the training (0.002)
  --dropout P         probability, from 0 to below 1 (0)
  --seed N            of the weights and of the order of the text (1)
  --threads N         the results do not depend on it (1)
  --ranks N           ranks that train together, each on --batch sequences of its own: threads of this program,
                      or with mpi the processes that mpirun has started, each with a device of its machine under
                      --device cuda, whose memory MPI has to take (1)
  --wire NAME         what gradients are between ranks: as_stored, float32, bfloat16, half, mxfp8
                      (as_stored)
  --shard             ranks share the master weights and moments
  --rank-timeout N    seconds that a rank waits for the others before it ends, with the names of those that are
                      missing (600)
  --checkpoint FILE   saves everything now and then and at the end; the name of the recipe is put behind it
  --checkpoint-every N   steps from one to the next (100)
  --resume            goes on from the checkpoint, if there is one
  --retries N         starts the run again when it has failed or a rank has died, N times at most; each time it goes on
                      from the checkpoint, if there is one, as with --resume (0)
  --launch COMMAND    for --retries with --ranks mpi: what starts the processes, such as 'mpirun -n 8'
  --weights FILE      writes the weights as safetensors; the name of the recipe is put behind it
  --stop-after N      ends this run after N steps, as if it had been interrupted
  --sample N          characters that it writes in the end (200)
  --report FILE       draws losses and scales on a page for the browser
  --losses FILE       writes the loss and the scale of every step as CSV
  --help              this text
)";

/// Sets the sizes that go by a name. Throws user_error for another one.
inline void set_size(std::string_view name, gpt_sizes& sizes) {
    if (name == "tiny") {
        sizes = {.vocabulary = sizes.vocabulary};
    } else if (name == "small") {
        sizes = {.vocabulary = sizes.vocabulary, .context = 256, .layers = 6, .width = 384, .heads = 6};
    } else if (name == "gpt2") {
        sizes = {.vocabulary = sizes.vocabulary, .context = 1024, .layers = 12, .width = 768, .heads = 12};
    } else {
        throw user_error("--size is '" + std::string(name) + "'; it must be one of tiny small gpt2");
    }
}

inline mp::wire_format parse_wire(std::string_view option, std::string_view value) {
    using enum mp::wire_format;
    std::string names;
    for (const mp::wire_format it : {as_stored, float32, bfloat16, half, mxfp8}) {
        if (value == mp::name_of(it)) return it;
        names.append(" ").append(mp::name_of(it));
    }
    throw user_error(std::string(option) + " is '" + std::string(value) + "'; it must be one of" + names);
}

/// Reads the arguments without the program's name: "--option value" or "--option=value". Throws user_error
/// for anything that it does not understand.
inline options parse_options(std::span<const std::string_view> arguments, options defaults = {}) {
    options result = std::move(defaults);
    training_task& task = result.task;
    std::vector<std::string_view> names;
    for (const recipe& it : all_recipes()) names.push_back(it.name);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        const std::size_t equals = argument.find('=');
        const std::string_view name = argument.substr(0, equals);
        if (argument == "--help" || argument == "-h") {
            result.help = true;
            continue;
        }
        if (argument == "--resume") {
            task.resume = true;
            continue;
        }
        if (argument == "--shard") {
            task.shard = true;
            continue;
        }
        const auto known = [&](std::string_view option) { return name == option; };
        if (usage.find(" " + std::string(name) + " ") == std::string_view::npos || !name.starts_with("--") ||
            known("--resume") || known("--shard") || known("--help")) {
            throw user_error("unknown option '" + std::string(name) + "'; --help lists them");
        }
        if (equals == std::string_view::npos && i + 1 == arguments.size()) {
            throw user_error(std::string(name) + " needs a value");
        }
        const std::string_view value =
            equals == std::string_view::npos ? arguments[++i] : argument.substr(equals + 1);
        const auto count = [&](auto& into, auto most) {
            using number = std::remove_reference_t<decltype(into)>;
            into = parse_integer<number>(name, value, 1, static_cast<number>(most));
        };
        if (known("--recipe")) {
            if (value == "all") {
                result.recipes.assign(names.begin(), names.end());
                result.all = true;
            } else {
                add_names(name, value, names, result.recipes);
            }
        } else if (known("--device")) {
            if (value != "cpu" && value != "cuda" && value != "simulated") {
                throw user_error("--device is '" + std::string(value) +
                                 "'; it must be one of cpu cuda simulated");
            }
            result.device = value == "cpu" ? device::cpu : value == "cuda" ? device::cuda : device::simulated;
        } else if (known("--size")) {
            set_size(value, task.sizes);
        } else if (known("--layers")) {
            count(task.sizes.layers, 1000);
        } else if (known("--width")) {
            count(task.sizes.width, 100'000);
        } else if (known("--heads")) {
            count(task.sizes.heads, 1000);
        } else if (known("--context")) {
            count(task.sizes.context, 1'000'000);
        } else if (known("--steps")) {
            count(task.steps, 1'000'000'000);
        } else if (known("--stop-after")) {
            count(task.stop_after, 1'000'000'000);
        } else if (known("--checkpoint-every")) {
            count(task.checkpoint_every, 1'000'000'000);
        } else if (known("--batch")) {
            count(task.batch, 100'000);
        } else if (known("--accumulate")) {
            count(task.accumulate, 100'000);
        } else if (known("--threads")) {
            count(task.threads, 1024);
        } else if (known("--ranks")) {
            if (value == "mpi") {
                result.ranks = 0;
            } else {
                count(result.ranks, 64);
            }
        } else if (known("--rank-timeout")) {
            count(result.rank_timeout, 1'000'000);
        } else if (known("--retries")) {
            count(result.retries, 1'000'000);
        } else if (known("--launch")) {
            if (value.empty()) throw user_error("--launch needs a command");
            result.launch = value;
        } else if (known("--wire")) {
            task.wire = parse_wire(name, value);
        } else if (known("--sample")) {
            task.sample = parse_integer(name, value, 0, 1'000'000);
        } else if (known("--seed")) {
            task.seed = parse_integer(name, value, std::uint64_t{0}, std::uint64_t{1'000'000'000'000});
        } else if (known("--dropout")) {
            const auto probability = parse_number<float>(value);
            if (!probability || !(*probability >= 0 && *probability < 1)) {
                throw user_error(std::string(name) + " is '" + std::string(value) +
                                 "'; it must be a number from 0 to below 1");
            }
            task.dropout = *probability;
        } else if (known("--learning-rate")) {
            const auto rate = parse_number<double>(value);
            if (!rate || !(*rate > 0 && *rate < 1)) {
                throw user_error(std::string(name) + " is '" + std::string(value) +
                                 "'; it must be a number between 0 and 1");
            }
            task.learning_rate = *rate;
        } else {
            if (value.empty()) throw user_error(std::string(name) + " needs the name of a file");
            (known("--text")      ? result.text
             : known("--report")  ? result.report
             : known("--losses")  ? result.losses
             : known("--weights") ? task.weights
                                  : task.checkpoint) = value;
        }
    }
    if (task.sizes.width % task.sizes.heads != 0) {
        throw user_error("--width is " + std::to_string(task.sizes.width) +
                         "; it must be a multiple of --heads, which is " + std::to_string(task.sizes.heads));
    }
    if (task.resume && task.checkpoint.empty()) throw user_error("--resume needs --checkpoint");
    if (result.retries != 0 && task.checkpoint.empty()) throw user_error("--retries needs --checkpoint");
    if (result.retries != 0 && result.ranks == 0 && result.launch.empty()) {
        throw user_error(
            "--retries with --ranks mpi needs --launch, since a rank that dies ends all processes");
    }
    if (!result.launch.empty() && (result.retries == 0 || result.ranks != 0)) {
        throw user_error("--launch is for --retries with --ranks mpi");
    }
    if (result.device != device::cpu && task.shard) throw user_error("--shard is for --device cpu");
    if (result.device != device::cpu && task.wire == mp::wire_format::mxfp8) {
        throw user_error("--wire mxfp8 is for --device cpu");
    }
    if (result.device == device::cuda && result.ranks > 1) {
        throw user_error("--ranks is " + std::to_string(result.ranks) +
                         "; with --device cuda it must be mpi, of which each process has a device");
    }
    return result;
}

}  // namespace examples::train_gpt
