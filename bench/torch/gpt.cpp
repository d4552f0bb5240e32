// SPDX-License-Identifier: MIT
// The model of examples/train_gpt behind functions of C, for bench/torch/gpt.py.
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/thread_pool.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "../../examples/train_gpt/gpt.hpp"

namespace {

using examples::train_gpt::gpt;
using examples::train_gpt::gpt_sizes;

/// A model in training, whatever its storage is.
struct trained {
    virtual ~trained() = default;
    virtual float step(std::span<const int> ids, std::span<const int> labels, std::ptrdiff_t batch,
                       double rate) = 0;
    virtual void for_each_weight(void (*visit)(const char* name, const float* values, long count)) = 0;
};

/// In Storage; under autocast if Computing is on.
template <class Storage, class Policy = mp::autocast::off, mp::precision Computing = mp::precision::off>
struct trained_in final : trained {
    mp::host_workspace workspace;
    mp::thread_pool pool;
    mp::cpu exec;
    gpt<Storage, Policy> model;
    mp::adamw<Storage, Storage, float, float> matrices;
    mp::adamw<float> norms;
    mp::dynamic_loss_scaler scaler{{}, false};
    std::shared_ptr<mp::autocast::cast_cache> casts = std::make_shared<mp::autocast::cast_cache>();

    static mp::adamw_options with_decay(double decay) {
        return {.learning_rate = 2e-3, .beta2 = 0.95, .weight_decay = decay};
    }
    trained_in(const gpt_sizes& sizes, int threads)
        : pool(threads),
          exec{.threads = threads, .workspace = &workspace, .pool = &pool},
          model(sizes, 1),
          matrices(exec, model.matrices.parameters(), {with_decay(0.1), with_decay(0.0)}),
          norms(exec, model.norms.parameters(), with_decay(0.0)) {}

    float step(std::span<const int> ids, std::span<const int> labels, std::ptrdiff_t batch,
               double rate) override {
        const mp::autocast_region region({.cpu = Computing, .cache = casts, .keep_cache = true});
        mp::training_iteration iteration(scaler, matrices, norms);
        model.forward(exec, ids, batch);
        const float loss = model.backward(exec, labels, {}, false);
        matrices.set_learning_rate_factor(rate);
        norms.set_learning_rate_factor(rate);
        iteration.clip_global_gradient_norm(1.0);
        static_cast<void>(iteration.finish());
        return loss;
    }
    void for_each_weight(void (*visit)(const char*, const float*, long)) override {
        const auto all = [&](auto& store) {
            for (const auto& it : store.parameters()) {
                std::vector<float> values;
                for (const auto x : it.weights) values.push_back(static_cast<float>(x));
                visit(it.name.c_str(), values.data(), static_cast<long>(values.size()));
            }
        };
        all(model.matrices);
        all(model.norms);
    }
};

}  // namespace

extern "C" {
trained* gpt_make(int format, int threads, long vocabulary, long context, long layers, long width,
                  long heads) {
    const gpt_sizes sizes{
        .vocabulary = vocabulary, .context = context, .layers = layers, .width = width, .heads = heads};
    if (format == 1) return new trained_in<mp::bfloat16>(sizes, threads);
    if (format == 2)
        return new trained_in<float, mp::autocast::by_region, mp::precision::bf16>(sizes, threads);
    return new trained_in<float>(sizes, threads);
}
float gpt_step(trained* it, const int* ids, const int* labels, long count, long batch, double rate) {
    const auto size = static_cast<std::size_t>(count);
    return it->step({ids, size}, {labels, size}, batch, rate);
}
void gpt_weights(trained* it, void (*visit)(const char*, const float*, long)) {
    it->for_each_weight(visit);
}
void gpt_free(trained* it) {
    delete it;
}
}
