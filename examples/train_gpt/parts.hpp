// SPDX-License-Identifier: MIT
/// \file
/// What all loops have: their options of optimizer and schedule, the text that they read, and how they judge a model.
#pragma once

#include <mp/nn/ops/softmax.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "training.hpp"

namespace examples::train_gpt {

/// Options of the groups `decayed` and `plain`.
inline std::vector<mp::adamw_options> optimizer_options(const training_task& task) {
    const mp::adamw_options base{.learning_rate = task.learning_rate, .beta2 = 0.95, .weight_decay = 0.1};
    mp::adamw_options undecayed = base;
    undecayed.weight_decay = 0;
    return {base, undecayed};
}
/// Added to the seed of the text.
inline constexpr std::uint64_t dropout_seed = 2;
inline constexpr mp::pytorch_policy scaling{.growth_interval = 200};

/// The learning rate, as a factor of the largest.
inline auto schedule_of(const training_task& task) {
    const std::uint64_t warm_up = std::min<std::uint64_t>(task.steps / 10 + 1, 100);
    return mp::warmup_then{
        mp::linear_warmup{.steps = warm_up},
        mp::cosine_decay{.steps = std::max(task.steps, warm_up + 1) - warm_up, .final_factor = 0.1}};
}

/// Sequences of inputs and the tokens that follow them. Which ones is a function of seed and step: a resumed
/// run has no place of a reader to restore.
struct batch_of_text {
    std::vector<int> ids, labels;

    void take(std::span<const int> from, std::ptrdiff_t context, const auto& first_of, std::ptrdiff_t batch) {
        ids.clear();
        labels.clear();
        for (std::ptrdiff_t i = 0; i < batch; ++i) {
            const auto first = from.begin() + static_cast<std::ptrdiff_t>(first_of(i));
            ids.insert(ids.end(), first, first + context);
            labels.insert(labels.end(), first + 1, first + 1 + context);
        }
    }
    void draw(const training_task& task, std::uint64_t number) {
        const std::span<const int> text = task.text->training;
        const auto room = text.size() - static_cast<std::size_t>(task.sizes.context) - 1;
        take(
            text, task.sizes.context,
            [&](std::ptrdiff_t i) {
                const std::uint64_t index =
                    number * static_cast<std::uint64_t>(task.batch) + static_cast<std::uint64_t>(i);
                return mp::random_bits(task.seed, index) % room;
            },
            task.batch);
    }
};

/// The losses of all ranks, whose batches are of one size.
inline void mean_over_ranks(mp::any_communicator& ranks, std::vector<double>& losses) {
    const auto size = static_cast<std::size_t>(ranks.size());
    std::vector<double> all(losses.size() * size);
    std::copy(losses.begin(), losses.end(), all.begin() + ranks.rank() * std::ssize(losses));
    std::vector<std::size_t> cuts;
    for (std::size_t r = 0; r <= size; ++r) cuts.push_back(r * losses.size() * sizeof(double));
    auto call = ranks.start_gather(std::as_writable_bytes(std::span(all)), cuts);
    ranks.wait(call);
    for (std::size_t i = 0; i < losses.size(); ++i) {
        double sum = 0;
        for (std::size_t r = 0; r < size; ++r) sum += all[r * losses.size() + i];
        losses[i] = sum / static_cast<double>(size);
    }
}

/// Tokens in the memory of the executor.
template <class Executor>
mp::tensor<int> placed(const Executor& exec, std::span<const int> tokens) {
    mp::tensor<int> made(exec, 1, std::ssize(tokens));
    made.copy_from(exec, tokens);
    return made;
}

/// The mean loss over places spread over the text that was not trained on.
template <class Executor, class Model>
double validation_loss(const Executor& exec, Model& model, const training_task& task) {
    const std::span<const int> text = task.text->validation;
    const std::ptrdiff_t context = task.sizes.context;
    const auto windows = std::min<std::ptrdiff_t>(16, (std::ssize(text) - 1) / context);
    batch_of_text some;
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < windows; ++i) {
        some.take(text, context, [&](auto) { return (std::ssize(text) - 1 - context) * i / windows; }, 1);
        const auto ids = placed(exec, some.ids), labels = placed(exec, some.labels);
        model.forward(exec, ids.values(), 1);
        sum += static_cast<double>(model.loss(exec, labels.values()));
    }
    return sum / static_cast<double>(windows);
}

/// The weights for other programs, as safetensors.
template <class Model>
void save_weights(const std::string& path, Model& model) {
    mp::save_safetensors(path, [&](auto& visit) {
        model.matrices.visit_state(visit);
        model.norms.visit_state(visit);
    });
}

/// What the model writes after a line break, drawn by its probabilities.
template <class Executor, class Model>
std::string sample(const Executor& exec, Model& model, const training_task& task) {
    const std::string& characters = task.text->characters;
    std::vector<int> ids{
        static_cast<int>(std::max<std::size_t>(characters.find('\n'), 0) % characters.size())};
    mp::tensor<float> last(exec, 1, std::ssize(characters));
    std::string text;
    for (int i = 0; i < task.sample; ++i) {
        const auto given = placed(exec, ids);
        const auto logits = model.forward(exec, given.values(), 1);
        mp::ops::softmax<mp::autocast::off>(exec, logits.block(logits.rows - 1, 0, 1, logits.columns),
                                            last.view());
        const std::vector<float> row = last.to_host(exec);
        double left =
            static_cast<double>(mp::random_bits(task.seed + 1, static_cast<std::uint64_t>(i))) * 0x1p-32;
        std::size_t next = 0;
        while (next + 1 < row.size() && (left -= static_cast<double>(row[next])) >= 0) ++next;
        text.push_back(characters[next]);
        if (std::ssize(ids) == task.sizes.context) ids.erase(ids.begin());
        ids.push_back(static_cast<int>(next));
    }
    return text;
}

}  // namespace examples::train_gpt
