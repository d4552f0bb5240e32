// SPDX-License-Identifier: MIT
// A step of a transformer takes nothing from the heap after the first ones, and whichever allocation of mp::load_checkpoint
// fails, nothing has been loaded.
#include "count_allocations.hpp"

#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>
#include <mp/optim.hpp>
#include <mp/thread_pool.hpp>
#include <mp/training.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "test_folder.hpp"

namespace {

namespace layers = mp::layers;
namespace ac = mp::autocast;

constexpr std::ptrdiff_t batch = 4, tokens = 33, width = 48, classes = 29;

template <class Storage, class Policy>
struct model {
    mp::parameter_store<Storage> store;
    mp::parameter_store<float> norms;
    layers::embedding<Storage, Storage, Policy> table{store, "table", classes, width};
    layers::layer_norm<float, Storage, Policy> norm{norms, "norm", width};
    layers::attention<Storage, Storage, Policy> attention{
        store, "attention", width, {.heads = 3, .key_heads = 1}};
    layers::rms_norm<float, Storage, Policy> second_norm{norms, "second_norm", width};
    layers::mlp<Storage, Storage, Policy> mlp{store, "mlp", width, 4 * width};
    layers::linear<Storage, Storage, Policy> head{store, "head", width, classes};
    mp::tensor<Storage> x{batch * tokens, width}, dx{batch * tokens, width}, room{batch * tokens, width};
    std::vector<int> ids;

    model() {
        store.build(1);
        norms.build(2);
        for (int i = 0; i < batch * tokens; ++i) ids.push_back(static_cast<int>(i * i % classes));
    }
    void run(mp::cpu exec, float scale, bool add) {
        table.forward(exec, ids, x.view());
        const auto a =
            attention.forward(exec, norm.forward(exec, x.view()), batch, {.probability = 0.1F, .seed = 1});
        const auto logits = head.forward(exec, mlp.forward(exec, second_norm.forward(exec, a)));
        mp::ops::softmax_cross_entropy_with_gradient<Policy>(exec, mp::matrix_view<const Storage>(logits),
                                                             ids, logits, {.scale = scale});
        head.backward(exec, logits, room.view(), add);
        mlp.backward(exec, room.view(), dx.view(), add);
        second_norm.backward(exec, dx.view(), room.view(), add);
        attention.backward(exec, room.view(), dx.view(), add);
        norm.backward(exec, dx.view(), room.view(), add);
        table.backward(exec, room.view(), add);
    }
};

/// Allocations of each step of two micro batches.
template <class Storage, class Policy>
std::vector<long> allocations_of_steps(mp::cpu exec) {
    model<Storage, Policy> it;
    mp::adamw<Storage> optimizer(exec, it.store.parameters());
    mp::adamw<float> of_norms(exec, it.norms.parameters());
    mp::dynamic_loss_scaler scaler({.initial_scale = 1024});
    std::vector<long> found;
    for (int step = 0; step < 5; ++step) {
        const long before = allocations;
        {
            mp::training_iteration iteration(scaler, optimizer, of_norms);
            for (const bool add : {false, true}) it.run(exec, iteration.current_scale(), add);
            iteration.clip_global_gradient_norm(1.0);
            static_cast<void>(iteration.finish());
        }
        found.push_back(allocations - before);
    }
    return found;
}

template <class Storage, class Policy>
void check(int threads = 1) {
    mp::host_workspace workspace;
    mp::thread_pool pool(threads);
    const mp::cpu exec{.threads = threads, .workspace = &workspace, .pool = &pool};
    const auto found = allocations_of_steps<Storage, Policy>(exec);
    CHECK(found[0] > 0);  // the layers' memory, so that counting is seen to work
    for (std::size_t step = 2; step < found.size(); ++step) {
        CAPTURE(step);
        CHECK(found[step] == 0);
    }
    CHECK(workspace.high_water() > 0);
}

TEST_CASE("a step of a transformer allocates nothing after the first, in any format") {
    check<float, ac::off>();
    check<mp::bfloat16, ac::off>();
    check<mp::half, ac::off>();
    check<mp::bfloat16, ac::fp8_hybrid>();
    check<mp::bfloat16, layers::float8_delayed_scaling>();
    check<mp::bfloat16, layers::mxfp8_block_scaling>();
    check<float, ac::fp16>();
    check<float, ac::off>(2);
    check<mp::bfloat16, ac::off>(3);
}

TEST_CASE("neither do the casts of a region, which are kept until the weights change") {
    for (const auto value : {mp::precision::bf16, mp::precision::fp16, mp::precision::fp8}) {
        // One that compares no casts, as debug builds do in memory of their own.
        const auto cache = std::make_shared<ac::cast_cache>(ac::cast_cache::default_max_bytes, false);
        const mp::autocast_region region({.cpu = value, .cache = cache});
        check<float, ac::by_region>();
        CHECK(cache->statistics().hits > 0);
    }
}

/// Allocations of each step of a small network whose backward pass is recorded.
template <class Storage>
std::vector<long> allocations_by_tape(mp::cpu exec, mp::tape& tape) {
    mp::parameter_store<Storage> store;
    layers::linear<Storage, Storage, ac::off> first(store, "first", width, width);
    layers::rms_norm<Storage, Storage, ac::off> norm(store, "norm", width);
    layers::mlp<Storage, Storage, ac::off> mlp(store, "mlp", width, 4 * width);
    layers::linear<Storage, Storage, ac::off> head(store, "head", width, classes);
    store.build(1);
    const mp::tensor<Storage> x(batch, width);
    const std::vector<int> labels(batch, 1);
    std::vector<long> found;
    for (int step = 0; step < 4; ++step) {
        const long before = allocations;
        const auto h = tape.call(first, exec, x.view());
        const auto z = tape.add<ac::off>(exec, h, tape.call(mlp, exec, tape.call(norm, exec, h)));
        const auto y = tape.call(head, exec, z);
        mp::ops::softmax_cross_entropy_with_gradient<ac::off>(exec, y.value(), labels, y.add_to_gradient());
        tape.backward();
        found.push_back(allocations - before);
    }
    return found;
}

TEST_CASE("a recorded backward pass allocates nothing from the second step on, in a region, too") {
    mp::host_workspace workspace;
    const mp::cpu exec{.workspace = &workspace};
    const auto check_steps = [&](const std::vector<long>& found) {
        CHECK(found[0] > 0);
        for (std::size_t step = 1; step < found.size(); ++step) {
            CAPTURE(step);
            CHECK(found[step] == 0);
        }
    };
    {
        mp::tape tape;
        check_steps(allocations_by_tape<float>(exec, tape));
        const std::size_t bytes = tape.high_water();
        CHECK(bytes > 0);
        check_steps(allocations_by_tape<float>(exec, tape));  // the layers' memory
        CHECK(tape.high_water() == bytes);
    }
    const mp::autocast_region region(
        {.cpu = mp::precision::bf16, .rules = {{"softmax", mp::op_category::banned}}});
    const mp::autocast_layer layer("a name that is too long to be kept inside of a string");
    mp::tape tape;
    check_steps(allocations_by_tape<mp::bfloat16>(exec, tape));
    check_steps(allocations_by_tape<mp::bfloat16>(exec, tape));
}

/// One of everything that a checkpoint has.
struct whole_run {
    using bf16 = mp::bfloat16;
    mp::parameter_store<bf16> store;
    layers::linear<bf16, bf16, ac::fp8_hybrid> layer{
        store, "layer", 4, 8, {.float8 = {.amax_history_length = 3}}};
    std::unique_ptr<mp::adamw<bf16>> optimizer;
    std::unique_ptr<mp::weight_average<bf16, bf16, float, float>> average;
    mp::dynamic_loss_scaler scaler;
    mp::gradient_accumulator accumulator{3};
    std::string text = "a text that is longer than what a string has room for";
    std::vector<float> rows = std::vector<float>(6);
    bool store_first;

    whole_run(float seed, bool weights_first) : store_first(weights_first) {
        store.build(1);
        optimizer = std::make_unique<mp::adamw<bf16>>(store.parameters(), mp::adamw_options{});
        average = std::make_unique<mp::weight_average<bf16, bf16, float, float>>(*optimizer);
        for (int step = 0; step < 3; ++step) {
            for (bf16& it : store.gradients()) it = bf16(seed += 0.37F);
            optimizer->step();
            average->update();
        }
        scaler.set_growth_interval(static_cast<std::int32_t>(seed * 100.0F) + 100);
        rows.assign(6, seed);
        text += std::to_string(seed);
    }
    template <class Visitor>
    void operator()(Visitor& visit) {
        if (store_first) visit("store", store);
        visit("text", text);
        visit("optimizer", *optimizer);
        visit("layer", layer);
        visit("average", *average);
        visit("scaler", scaler);
        visit("accumulator", accumulator);
        visit("rows", mp::row_major(rows.data(), 2, 3));
        if (!store_first) visit("store", store);
    }
};

/// What tests/data/checkpoint_version_1.safetensors is of, whose means are divided when they are loaded.
struct run_of_version_1 {
    using bf16 = mp::bfloat16;
    std::vector<bf16> w = std::vector<bf16>(5, bf16(1.0F)), dw = w, v = std::vector<bf16>(3), dv = v,
                      l = std::vector<bf16>(4), dl = l;
    std::vector<float> p = std::vector<float>(2), dp = p;
    mp::adamw<bf16, bf16, bf16, bf16> adamw{
        {{"w", w, dw}, {"v", v, dv}}, mp::adamw_options{.low_precision_update = mp::weight_update::kahan}};
    mp::lamb<bf16, bf16, bf16, bf16> lamb{{{"l", l, dl}},
                                          mp::lamb_options{.low_precision_update = mp::weight_update::kahan}};
    mp::adamw<float> plain{{{"p", p, dp}}};
    template <class Visitor>
    void operator()(Visitor& visit) {
        visit("adamw", adamw);
        visit("lamb", lamb);
        visit("plain", plain);
    }
};

/// All that would be saved.
template <class Run>
std::string bytes_of(Run& run) {
    mp::detail::state_writer writer;
    run(writer);
    std::string bytes = writer.finish(false);
    for (const auto& it : writer.entries()) {
        mp::detail::for_file_bytes(it, [&](std::string_view part) { bytes.append(part); });
    }
    return bytes;
}

/// Loads a file with each allocation failing in turn, until none does. Returns how many failed; -1 if one of them left
/// something changed.
template <class Run>
int failures_until_loaded(const std::string& path, Run& run) {
    const std::string before = bytes_of(run);
    for (int failures = 0;; ++failures) {
        bool loaded = true;
        allocations_before_failure = failures;
        try {
            mp::load_checkpoint(path, run);
        } catch (const std::bad_alloc&) {
            loaded = false;
        }
        allocations_before_failure = -1;
        if (loaded) return failures;
        if (bytes_of(run) != before) return -1;
    }
}

}  // namespace

TEST_CASE("whichever allocation of load_checkpoint fails, everything is as it was") {
    const test_folder folder;
    const std::string path = folder.file("x");
    for (const bool store_first : {false, true}) {
        whole_run saved(1.5F, store_first), loaded(-0.25F, store_first);
        mp::save_checkpoint(path, saved);
        CHECK(bytes_of(loaded) != bytes_of(saved));
        CHECK(failures_until_loaded(path, loaded) > 300);
        CHECK(bytes_of(loaded) == bytes_of(saved));
    }
    run_of_version_1 older;
    CHECK(failures_until_loaded(MP_SOURCE_DIR "/tests/data/checkpoint_version_1.safetensors", older) > 100);
    CHECK(older.adamw.step_count() == 6);
}
