// SPDX-License-Identifier: MIT
/// \file
/// Training of a GPT: what is asked for, and what comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <mp/convert.hpp>
#include <mp/parallel.hpp>

#include "corpus.hpp"
#include "gpt.hpp"

namespace examples::train_gpt {

/// What one training is given, apart from its recipe.
struct training_task {
    const corpus* text = nullptr;
    gpt_sizes sizes = {};
    std::ptrdiff_t batch = 16;  ///< sequences of a micro batch
    int accumulate = 1;         ///< micro batches of a step
    std::uint64_t steps = 400;
    std::uint64_t stop_after = 0;  ///< steps of this run, of which the schedule knows nothing; 0 for all
    double learning_rate = 2e-3;
    float dropout = 0;  ///< probability
    std::uint64_t seed = 1;
    int threads = 1;
    std::string checkpoint;  ///< file; empty for none
    std::uint64_t checkpoint_every = 100;
    bool resume = false;
    std::string weights;  ///< file for other programs; empty for none
    int sample = 200;     ///< characters
    /// The ranks; each has micro batches of its own, of `batch` sequences.
    mp::any_communicator* ranks = nullptr;
    mp::wire_format wire = mp::wire_format::as_stored;  ///< of gradients between ranks
    bool shard = false;                                 ///< masters and moments are shared among the ranks
    std::function<void(const std::string&)> after_step = [](const std::string&) {};
};

/// Seconds of the parts of all steps.
struct step_seconds {
    double forward = 0, backward = 0, optimizer = 0, all = 0;
    double casts = 0;  ///< of forward and backward, where a region casts
    double ranks = 0;  ///< of the optimizer: waiting for gradients of other ranks
};

/// Bytes, at the end of the training. `casts` are those of weights that are kept from forward to backward.
struct memory_use {
    std::size_t weights = 0, gradients = 0, masters = 0, moments = 0, activations = 0, workspace = 0,
                casts = 0;
};

/// What came out of a training.
struct training_record {
    std::vector<double> losses;  ///< of every step, in nats for each character
    std::vector<double> scales;  ///< of every step
    std::vector<std::uint64_t> skipped;
    std::vector<double> validated_at;  ///< steps, and the loss on text that was not trained on
    std::vector<double> validation;
    std::size_t parameters = 0;
    double tokens_per_second = 0;
    step_seconds seconds;
    memory_use memory;
    mp::range_report
        gradients;  ///< of matrices, as they were stored every 50 steps; what half would make of them
    std::string sample;
};

/// A way to train.
struct recipe {
    std::string_view name;
    std::string_view meaning;
    training_record (*train)(const training_task& task);
};

/// On CPUs.
std::span<const recipe> all_recipes();

/// A GPU that trains.
struct gpu {
    std::string name;
    std::span<const recipe> recipes;  ///< some of the names of all_recipes()
    /// Takes one of the machine's devices for a rank, where there are several.
    void (*choose)(int rank) = [](int) {};
};

/// The simulated one.
gpu simulated_gpu();
/// The current CUDA device. Throws user_error where there is none, or none that this program has code for,
/// and in programs that were built without CUDA.
gpu find_cuda_device();

}  // namespace examples::train_gpt
