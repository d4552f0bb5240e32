// SPDX-License-Identifier: MIT
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/thread_pool.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <array>
#include <filesystem>

#include "../common/stopwatch.hpp"
#include "../common/text.hpp"
#include "parts.hpp"
#include "training.hpp"

namespace examples::train_gpt {
namespace {

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
    gpt<Storage, Policy> model(exec, task.sizes, task.seed);
    mp::broadcast_weights(ranks, model.matrices, model.norms);
    mp::gradient_reduction reduction(exec, ranks, {.wire = task.wire, .share_only = task.shard},
                                     model.matrices, model.norms);

    // Decay for matrices; one norm over all of them.
    const auto options = optimizer_options(task);
    auto matrices =
        mp::shard<mp::adamw<Storage, Storage, Master, float>>(exec, reduction, model.matrices, options);
    auto norms = mp::shard<mp::adamw<float>>(exec, reduction, model.norms, options[plain]);
    mp::dynamic_loss_scaler scaler(scaling, Scales);
    const auto schedule = schedule_of(task);

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
        visit.expect("dropout", task.dropout);
        visit("matrices", matrices);
        visit("norms", norms);
        visit("scaler", scaler);
        visit("layers", model);
        visit("ranks", reduction);
        visit("step", step);
    };
    if (task.resume && std::filesystem::exists(task.checkpoint))
        mp::load_checkpoint(ranks, task.checkpoint, everything);
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
            const std::uint64_t number =
                step * micro_batches + static_cast<std::uint64_t>(micro) * size + rank;
            batch.draw(task, number);
            const float share = 1.0F / static_cast<float>(task.accumulate);
            forward.start();
            model.forward(exec, batch.ids, task.batch,
                          {{.probability = task.dropout,
                            .seed = task.seed + dropout_seed,
                            .offset = number * model.dropout_words(task.batch)}});
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
    if (!task.weights.empty() && ranks.rank() == 0) save_weights(task.weights, model);
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
