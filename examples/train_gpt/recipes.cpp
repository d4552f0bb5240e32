// SPDX-License-Identifier: MIT
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/format/philox.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/thread_pool.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "../common/stopwatch.hpp"
#include "../common/text.hpp"
#include "training.hpp"

namespace examples::train_gpt {
namespace {

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

/// The mean loss over places spread over the text that was not trained on.
template <class Model>
double validation_loss(mp::cpu exec, Model& model, const training_task& task) {
    const std::span<const int> text = task.text->validation;
    const std::ptrdiff_t context = task.sizes.context;
    const auto windows = std::min<std::ptrdiff_t>(16, (std::ssize(text) - 1) / context);
    batch_of_text some;
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < windows; ++i) {
        some.take(text, context, [&](auto) { return (std::ssize(text) - 1 - context) * i / windows; }, 1);
        model.forward(exec, some.ids, 1);
        sum += static_cast<double>(model.loss(exec, some.labels));
    }
    return sum / static_cast<double>(windows);
}

/// What the model writes after a line break, drawn by its probabilities.
template <class Model>
std::string sample(mp::cpu exec, Model& model, const training_task& task) {
    const std::string& characters = task.text->characters;
    std::vector<int> ids{
        static_cast<int>(std::max<std::size_t>(characters.find('\n'), 0) % characters.size())};
    std::vector<float> row(characters.size());
    std::string text;
    for (int i = 0; i < task.sample; ++i) {
        const auto logits = model.forward(exec, ids, 1);
        const auto p = mp::row_major(row.data(), 1, std::ssize(row));
        mp::ops::softmax(exec, logits.block(logits.rows - 1, 0, 1, logits.columns), p);
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

/// The losses of all ranks, whose batches are of one size.
void mean_over_ranks(mp::any_communicator& ranks, std::vector<double>& losses) {
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

/// Bytes of master weights on this rank.
template <class Optimizer>
std::size_t masters_of(const Optimizer& optimizer) {
    using of = typename Optimizer::optimizer_type;
    if (!of::has_master_copy) return 0;
    std::size_t count = 0;
    for (const auto& it : optimizer.local().parameters()) count += it.weights.size();
    return count * sizeof(typename of::master_type);
}

/// Trains with weights, gradients and activations in Storage; ops compute in Computing where Policy asks the region.
/// This is the part to copy.
template <class Storage, class Policy, class Master, bool Scales,
          mp::precision Computing = mp::precision::off>
training_record train(const training_task& task) {
    mp::host_workspace workspace;
    mp::thread_pool pool(task.threads);
    const mp::cpu exec{.threads = task.threads, .workspace = &workspace, .pool = &pool};
    mp::any_communicator& ranks = *task.ranks;
    gpt<Storage, Policy> model(task.sizes, task.seed);
    mp::broadcast_weights(ranks, model.matrices, model.norms);
    mp::gradient_reduction reduction(exec, ranks, {.wire = task.wire, .share_only = task.shard},
                                     model.matrices, model.norms);

    // Decay for matrices; one norm over all of them.
    const mp::adamw_options base{.learning_rate = task.learning_rate, .beta2 = 0.95, .weight_decay = 0.1};
    mp::adamw_options undecayed = base;
    undecayed.weight_decay = 0;
    auto matrices = mp::shard<mp::adamw<Storage, Storage, Master, float>>(exec, reduction, model.matrices,
                                                                          std::vector{base, undecayed});
    auto norms = mp::shard<mp::adamw<float>>(exec, reduction, model.norms, undecayed);
    mp::dynamic_loss_scaler scaler({.growth_interval = 200}, Scales);
    const std::uint64_t warm_up = std::min<std::uint64_t>(task.steps / 10 + 1, 100);
    const mp::warmup_then schedule{
        mp::linear_warmup{.steps = warm_up},
        mp::cosine_decay{.steps = std::max(task.steps, warm_up + 1) - warm_up, .final_factor = 0.1}};

    mp::autocast::cast_timer casts;
    const mp::autocast_region region({.cpu = Computing, .ledger = &casts});

    training_record record;
    std::uint64_t step = 0;
    // Of all ranks: a run may go on with fewer ranks that accumulate more.
    const auto rank = static_cast<std::uint64_t>(ranks.rank()),
               size = static_cast<std::uint64_t>(ranks.size());
    const std::uint64_t micro_batches = static_cast<std::uint64_t>(task.accumulate) * size;
    const auto everything = [&](auto& visit) {
        // What the program sets and the bits depend on: a run that goes on with others is refused.
        visit.expect("seed", task.seed);
        visit.expect("steps", task.steps);
        visit.expect("sequences", static_cast<std::uint64_t>(task.batch));
        visit.expect("micro batches", micro_batches);
        visit.expect("characters", static_cast<std::uint64_t>(task.text->training.size()));
        visit("matrices", matrices);
        visit("norms", norms);
        visit("scaler", scaler);
        visit("layers", model);
        visit("ranks", reduction);
        visit("step", step);
    };
    if (task.resume && std::filesystem::exists(task.checkpoint)) {
        mp::load_checkpoint(ranks, task.checkpoint, everything);
        model.weights_changed();
    }
    mp::require_same_state(ranks, everything);
    const std::uint64_t first_step = step;
    const std::uint64_t end =
        task.stop_after == 0 ? task.steps : std::min(task.steps, step + task.stop_after);

    batch_of_text batch;
    stopwatch forward, backward, update, all;
    double cast_seconds = 0;
    all.start();
    for (; step < end; ++step) {
        mp::training_iteration iteration(scaler, matrices, norms);
        casts.clear();
        double loss = 0;
        for (int micro = 0; micro < task.accumulate; ++micro) {
            batch.draw(task, step * micro_batches + static_cast<std::uint64_t>(micro) * size + rank);
            const float share = 1.0F / static_cast<float>(task.accumulate);
            forward.start();
            model.forward(exec, batch.ids, task.batch);
            forward.stop();
            backward.start();
            const auto overlap = reduction.backward(iteration.current_scale(), micro + 1 == task.accumulate);
            loss += static_cast<double>(model.backward(
                exec, batch.labels, {.weight = share, .scale = iteration.current_scale()}, micro != 0));
            backward.stop();
        }
        update.start();
        reduction.finish();
        mp::reduce_amax(ranks, model);
        record.scales.push_back(static_cast<double>(iteration.current_scale()));
        const double factor = schedule.at(step);
        matrices.set_learning_rate_factor(factor);
        norms.set_learning_rate_factor(factor);
        const bool last = step + 1 == end;
        const bool looks = last || (step + 1) % 50 == 0;
        if (looks) {
            for (const auto& it : model.matrices.parameters()) {
                record.gradients += mp::report_range<mp::half>(exec, it.gradient);
            }
        }
        iteration.clip_global_gradient_norm(1.0);
        if (!iteration.finish()) record.skipped.push_back(step);
        model.weights_changed();
        update.stop();
        cast_seconds += casts.seconds();
        record.losses.push_back(loss);
        if (looks) {
            all.stop();
            record.validated_at.push_back(static_cast<double>(step + 1));
            record.validation.push_back(validation_loss(exec, model, task));
            all.start();
        }
        if (!task.checkpoint.empty() && (last || (step + 1) % task.checkpoint_every == 0)) {
            ++step;  // the next one to be done
            mp::save_checkpoint(ranks, task.checkpoint, everything);
            --step;
        }
        task.after_step("loss " + fixed(loss, 3));
    }
    all.stop();
    mean_over_ranks(ranks, record.losses);

    const auto steps = static_cast<double>(end - first_step);
    record.parameters = model.parameter_count();
    record.seconds = {forward.seconds(), backward.seconds(), update.seconds(),
                      all.seconds(),     cast_seconds,       reduction.statistics().seconds_waited};
    record.tokens_per_second = steps * static_cast<double>(task.batch * task.sizes.context) *
                               static_cast<double>(micro_batches) / all.seconds();
    record.memory = {
        .weights = model.matrices.weights().size_bytes() + model.norms.weights().size_bytes(),
        .gradients = model.matrices.gradients().size_bytes() + model.norms.gradients().size_bytes(),
        .masters = masters_of(matrices),
        .moments = matrices.state_bytes() + norms.state_bytes() - masters_of(matrices),
        .activations = model.activation_bytes(),
        .workspace = workspace.high_water(),
        .casts = mp::autocast_cache() == nullptr ? 0 : mp::autocast_cache()->bytes()};
    record.sample = sample(exec, model, task);
    return record;
}

namespace ac = mp::autocast;
constexpr std::array recipes{
    recipe{"fp32", "float throughout", train<float, ac::off, float, false>},
    recipe{"amp_bf16", "float under autocast, which computes in bfloat16 what PyTorch's does",
           train<float, ac::by_region, float, false, mp::precision::bf16>},
    recipe{"amp_fp16", "float under autocast, which computes in half, with dynamic loss scaling",
           train<float, ac::by_region, float, true, mp::precision::fp16>},
    recipe{"bf16", "bfloat16 with float master weights", train<mp::bfloat16, ac::off, float, false>},
    recipe{"fp16", "half with float master weights and dynamic loss scaling",
           train<mp::half, ac::off, float, true>},
    recipe{"fp16_alone", "half weights without masters, no loss scaling",
           train<mp::half, ac::off, mp::half, false>},
    recipe{"fp8", "products in float8_e4m3fn and e5m2 with delayed scaling, the rest as bf16",
           train<mp::bfloat16, mp::layers::float8_delayed_scaling, float, false>},
    recipe{"mxfp8", "products of blocks of 32 in float8_e4m3fn, the rest as bf16",
           train<mp::bfloat16, mp::layers::mxfp8_block_scaling, float, false>},
};

}  // namespace

std::span<const recipe> all_recipes() {
    return recipes;
}

}  // namespace examples::train_gpt
