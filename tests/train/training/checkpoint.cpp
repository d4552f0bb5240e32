// SPDX-License-Identifier: MIT
// A run that goes on from its checkpoint has the bits of the run that went on by
// itself; a checkpoint that does not fit, or is damaged at any byte, is refused and changes nothing.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/layerwise_scaling.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"
#include "test_folder.hpp"

namespace {

/// Two tensors with random gradients, now and then infinite ones, under an optimizer and a loss scaler.
template <class Optimizer>
struct run {
    using weight = typename Optimizer::weight_type;
    static constexpr std::size_t size = 300;

    std::vector<weight> w = std::vector<weight>(size, weight(1.0F));
    std::vector<weight> dw = std::vector<weight>(size);
    std::vector<weight> b = std::vector<weight>(5, weight(0.5F));
    std::vector<weight> db = std::vector<weight>(5);
    Optimizer optimizer;
    mp::dynamic_loss_scaler scaler;
    mp::weight_average<typename Optimizer::weight_type, typename Optimizer::gradient_type,
                       typename Optimizer::master_type, typename Optimizer::state_type>
        average;
    mp::amax_history history = mp::amax_history(16);
    std::uint64_t step = 0;
    mp::cpu exec;

    template <class Options>
    explicit run(Options options, mp::cpu on = {})
        : optimizer({{"w", w, dw}, {"b", b, db, 1}}, with(options, on)),
          scaler(mp::pytorch_policy{.initial_scale = 1024.0F, .growth_interval = 5}),
          average(optimizer),
          exec(on) {}

    void train(int steps) {
        for (int i = 0; i < steps; ++i, ++step) {
            std::mt19937 random(static_cast<unsigned>(step));
            std::normal_distribution<float> normal;
            for (weight& g : dw) g = weight(normal(random) * scaler.current_scale() * 1e-3F);
            for (weight& g : db) g = weight(normal(random) * scaler.current_scale() * 1e-3F);
            if (step % 4 == 2) dw[7] = weight(std::numeric_limits<float>::infinity());
            history.record(static_cast<float>(step) + 0.1F);
            history.update({});
            optimizer.set_learning_rate(0.01 + 0.001 * static_cast<double>(step), 1);
            scaler.unscale(optimizer);
            scaler.step(optimizer);
            scaler.update();
            average.update();
        }
    }
    template <class Visitor>
    void operator()(Visitor& visit) {
        visit("optimizer", optimizer);
        visit("scaler", scaler);
        visit("average", average);
        visit("history", history);
        visit("step", step);
    }
    void save(const std::string& path) {
        mp::save_checkpoint(path, [&](auto& visit) { (*this)(visit); });
    }
    void load(const std::string& path) {
        mp::load_checkpoint(path, [&](auto& visit) { (*this)(visit); });
    }
    /// All of its state, as the file that it would be saved to.
    std::string bytes() {
        const test_folder folder;
        save(folder.file("x"));
        return read_file(folder.file("x"));
    }

private:
    template <class Options>
    static auto with(Options options, mp::cpu) {
        return std::vector<Options>{options, options};
    }
};

template <class Optimizer, class Options>
void continues(const Options& options) {
    const test_folder folder;
    run<Optimizer> whole(options);
    whole.train(7);
    const std::string at_seven = folder.file("seven");
    whole.save(at_seven);
    whole.train(9);
    run<Optimizer> second(options);
    second.train(2);  // whose state is replaced
    second.load(at_seven);
    CHECK(second.bytes() == read_file(at_seven));
    second.train(9);
    CHECK(std::memcmp(second.w.data(), whole.w.data(), sizeof whole.w[0] * whole.w.size()) == 0);
    CHECK(second.bytes() == whole.bytes());
    // Each part is needed: without it, the run is another one.
    run<Optimizer> other(options);
    other.train(9);
    CHECK(other.bytes() != whole.bytes());
}

enum class phase : std::uint8_t { warm_up, training };

struct progress {
    phase present = phase::warm_up;
    double best = 0.0;
    std::vector<std::int64_t> order = {0, 0};
    bool improved = false;

    template <class Visitor>
    void visit_state(Visitor& visitor) {
        visitor("phase", present);
        visitor("best", best);
        visitor("order", order);
        visitor("improved", improved);
    }
};

using half_run = run<mp::sgd<mp::half>>;

/// What tests/data/checkpoint_version_1.safetensors is of.
struct whole_run {
    using bf16 = mp::bfloat16;
    std::vector<bf16> w = std::vector<bf16>(5), dw = w, v = std::vector<bf16>(3), dv = v,
                      l = std::vector<bf16>(4), dl = l;
    std::vector<float> p = std::vector<float>(2), dp = p;
    mp::adamw<bf16, bf16, bf16, bf16> adamw{
        {{"w", w, dw}, {"v", v, dv}}, mp::adamw_options{.low_precision_update = mp::weight_update::kahan}};
    mp::lamb<bf16, bf16, bf16, bf16> lamb{{{"l", l, dl}},
                                          mp::lamb_options{.low_precision_update = mp::weight_update::kahan}};
    mp::adamw<float> plain{{{"p", p, dp}}};
    template <class Visitor>
    void visit(Visitor& visitor) {
        visitor("adamw", adamw);
        visitor("lamb", lamb);
        visitor("plain", plain);
    }
};

}  // namespace

TEST_CASE("a run goes on to the same bits, whatever its weights, masters, state and way of update are") {
    continues<mp::sgd<float>>(mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9});
    continues<mp::sgd<mp::half>>(mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
    continues<mp::adamw<float>>(mp::adamw_options{.learning_rate = 0.01});
    continues<mp::adamw<mp::bfloat16>>(mp::adamw_options{.learning_rate = 0.01});
    continues<mp::lion<mp::half>>(mp::lion_options{.learning_rate = 0.01});
    continues<mp::lars<mp::half>>(mp::lars_options{.trust_coefficient = 0.02});
    continues<mp::lamb<mp::bfloat16>>(mp::lamb_options{.learning_rate = 0.01});
    continues<mp::adamw<mp::bfloat16, mp::bfloat16, float, mp::block_moment>>(
        mp::adamw_options{.learning_rate = 0.01});
    using alone = mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16>;
    for (const auto how : {mp::weight_update::nearest, mp::weight_update::stochastic,
                           mp::weight_update::kahan, mp::weight_update::split}) {
        continues<alone>(mp::adamw_options{.learning_rate = 0.01, .low_precision_update = how});
    }
}

TEST_CASE("Adafactor goes on from its row and column means, and refuses those of another shape") {
    std::vector<mp::bfloat16> w(60, mp::bfloat16(0.5F));
    std::vector<mp::bfloat16> dw(60);
    std::vector<mp::bfloat16> b(7, mp::bfloat16(0.5F));
    std::vector<mp::bfloat16> db(7);
    const auto train = [&](auto& optimizer, unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        for (int step = 0; step < 5; ++step) {
            for (auto* const part : {&dw, &db}) {
                for (mp::bfloat16& it : *part) it = mp::bfloat16(normal(random));
            }
            optimizer.step();
        }
    };
    const auto made = [&](std::size_t rows) {
        return mp::adafactor<mp::bfloat16>(
            {{.name = "w", .weights = w, .gradient = dw, .rows = rows}, {.weights = b, .gradient = db}});
    };
    const test_folder folder;
    const auto save = [&](auto& optimizer, const char* to) {
        mp::save_checkpoint(folder.file(to), [&](auto& visit) { visit("optimizer", optimizer); });
        return read_file(folder.file(to));
    };
    const auto load = [&](auto& optimizer, const char* from) {
        mp::load_checkpoint(folder.file(from), [&](auto& visit) { visit("optimizer", optimizer); });
    };
    auto first = made(12);
    train(first, 1);
    save(first, "five");
    train(first, 2);
    const std::string whole = save(first, "ten");
    auto second = made(12);
    load(second, "five");
    train(second, 2);
    CHECK(save(second, "again") == whole);
    auto other = made(6);
    CHECK_THROWS_AS(load(other, "five"), mp::file_error);
    CHECK(other.row_means(0)[0] == 0.0F);
}

TEST_CASE("a checkpoint that is damaged at any byte is refused and changes nothing") {
    const test_folder folder;
    half_run saved(mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9});
    saved.train(3);
    saved.save(folder.file("good"));
    const std::string good = read_file(folder.file("good"));
    half_run other(mp::sgd_options{.learning_rate = 0.1, .momentum = 0.9});
    other.train(1);
    const std::string before = other.bytes();
    std::mt19937 random(3);
    for (std::size_t at = 0; at < good.size(); ++at) {
        CAPTURE(at);
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
        write_file(folder.file("bad"), bad);
        CHECK_THROWS_AS(other.load(folder.file("bad")), mp::file_error);
    }
    for (std::size_t length = 0; length < good.size(); length += 7) {
        write_file(folder.file("bad"), good.substr(0, length));
        CHECK_THROWS_AS(other.load(folder.file("bad")), mp::file_error);
    }
    CHECK(other.bytes() == before);
}

TEST_CASE("a checkpoint of another run is refused, and says what does not fit") {
    const test_folder folder;
    const std::string path = folder.file("x");
    std::vector<float> w(4, 1.0F);
    std::vector<float> m(6, 2.0F);
    std::uint32_t n = 5;
    mp::save_checkpoint(path, [&](auto& visit) {
        visit("w", w);
        visit("m", mp::row_major(m.data(), 2, 3));
        visit("n", n);
    });
    const auto refusal = [&](auto&& everything) {
        return thrown<mp::file_error>([&] { mp::load_checkpoint(path, everything); });
    };
    std::vector<float> other_size(3, 9.0F);
    std::vector<mp::half> other_type(4);
    std::vector<float> found(4, 9.0F);
    CHECK(holds(refusal([&](auto& visit) {
                    visit("w", found);
                    visit("n", n);
                }),
                "there is 'm', which the program does not load"));
    CHECK(holds(refusal([&](auto& visit) {
                    visit("w", found);
                    visit("more", n);
                }),
                "there is no 'more'"));
    CHECK(holds(refusal([&](auto& visit) { visit("w", other_size); }),
                "'w' has 4 elements, and 3 were expected"));
    CHECK(holds(refusal([&](auto& visit) { visit("w", other_type); }),
                "'w' has elements of type F32, and F16"));
    CHECK(holds(refusal([&](auto& visit) {
                    visit("w", found);
                    visit("m", mp::row_major(m.data(), 3, 2));
                }),
                "'m' is a matrix of another shape"));
    CHECK(found == std::vector<float>(4, 9.0F));
    CHECK(other_size[0] == 9.0F);
    mp::load_checkpoint(path, [&](auto& visit) {
        visit("n", n);  // in any order
        visit("m", mp::row_major(m.data(), 2, 3));
        visit("w", found);
    });
    CHECK(found == w);

    mp::save_safetensors(path, [&](auto& visit) { visit("w", w); });
    CHECK(holds(refusal([&](auto& visit) { visit("w", found); }), "is no checkpoint"));
    CHECK(holds(thrown<mp::file_error>([&] { mp::load_checkpoint(folder.file("none"), [](auto&) {}); }),
                "No such file"));
}

TEST_CASE("what the bits depend on and the program sets has to be the same") {
    const test_folder folder;
    using alone = mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16>;
    const auto options = [](std::uint64_t seed, mp::weight_update how) {
        return mp::sgd_options{.learning_rate = 0.1, .low_precision_update = how, .seed = seed};
    };
    run<alone> saved(options(1, mp::weight_update::stochastic));
    saved.save(folder.file("x"));
    run<alone> other_seed(options(2, mp::weight_update::stochastic));
    CHECK(holds(thrown<mp::file_error>([&] { other_seed.load(folder.file("x")); }),
                "'optimizer.seed' was another one when the run was saved"));
    run<alone> other_update(options(1, mp::weight_update::nearest));
    CHECK(holds(thrown<mp::file_error>([&] { other_update.load(folder.file("x")); }),
                "'optimizer.weight_update'"));
}

TEST_CASE("options that were changed on the way are those of the run that goes on") {
    const test_folder folder;
    const mp::adamw_options options{.learning_rate = 0.01};
    run<mp::adamw<float>> whole(options);
    whole.train(2);
    mp::adamw_options changed = options;
    changed.learning_rate = 0.5;
    changed.beta1 = 0.5;
    changed.weight_decay = 0.25;
    changed.coupled_decay = true;
    whole.optimizer.set_options(changed, 1);
    whole.optimizer.set_learning_rate_factor(0.5);
    whole.save(folder.file("x"));
    run<mp::adamw<float>> second(options);
    second.load(folder.file("x"));
    CHECK(second.optimizer.options(0) == options);
    CHECK(second.optimizer.options(1) == changed);
    CHECK(second.optimizer.learning_rate(1) == 0.25);
    whole.train(3);
    second.train(3);
    CHECK(second.bytes() == whole.bytes());
}

// tests/data/README.md tells how the file was written.
TEST_CASE("means of a checkpoint of version 1 are divided by their bias, and those of float stay") {
    const char* const path = MP_SOURCE_DIR "/tests/data/checkpoint_version_1.safetensors";
    const mp::tensor_file file(path);
    CHECK(file.metadata().at("mp.checkpoint") == "1");
    whole_run run;
    mp::load_checkpoint(path, [&](auto& visitor) { run.visit(visitor); });
    CHECK(run.adamw.options().beta2 == 0.99);
    CHECK(run.adamw.step_count() == 6);
    const auto check = [&](const std::string& name, std::span<const mp::bfloat16> found, double beta) {
        CAPTURE(name);
        std::vector<mp::bfloat16> kept(found.size());
        file.read(name, std::span<mp::bfloat16>(kept));
        for (std::size_t i = 0; i < kept.size(); ++i) {
            const double divided =
                static_cast<double>(static_cast<float>(kept[i])) / (1.0 - std::pow(beta, 6.0));
            CHECK(found[i].bits() == mp::bfloat16(static_cast<float>(divided)).bits());
        }
    };
    check("adamw.w.state0", run.adamw.gradient_mean(0), 0.9);
    check("adamw.w.state1", run.adamw.gradient_mean_square(0), 0.99);
    check("adamw.v.state0", run.adamw.gradient_mean(1), 0.9);
    check("adamw.v.state1", run.adamw.gradient_mean_square(1), 0.99);
    check("lamb.l.state0", run.lamb.gradient_mean(0), 0.9);
    check("lamb.l.state1", run.lamb.gradient_mean_square(0), 0.999);
    std::vector<float> mean(2);
    file.read("plain.p.state0", std::span<float>(mean));
    CHECK(std::equal(mean.begin(), mean.end(), run.plain.gradient_mean(0).begin()));

    // Written again it is of the present version, and nothing is divided.
    const test_folder folder;
    mp::save_checkpoint(folder.file("again"), [&](auto& visitor) { run.visit(visitor); });
    CHECK(mp::tensor_file(folder.file("again")).metadata().at("mp.checkpoint") == "3");
    whole_run again;
    mp::load_checkpoint(folder.file("again"), [&](auto& visitor) { again.visit(visitor); });
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(again.adamw.gradient_mean(0)[i].bits() == run.adamw.gradient_mean(0)[i].bits());
        CHECK(again.adamw.gradient_mean_square(0)[i].bits() == run.adamw.gradient_mean_square(0)[i].bits());
    }
}

TEST_CASE(
    "an average of a checkpoint of version 2 has no remainders, one of the present version keeps them") {
    const char* const path = MP_SOURCE_DIR "/tests/data/checkpoint_version_2.safetensors";
    CHECK(mp::tensor_file(path).metadata().at("mp.checkpoint") == "2");
    std::vector<float> w(3, 5.0F), dw{0.1F, -0.3F, 0.7F};
    mp::sgd<float> optimizer({{"w", w, dw}}, {.learning_rate = 0.5});
    mp::weight_average average(optimizer, {.decay = 0.75});
    const auto any_remainder = [&] {
        return std::ranges::any_of(average.remainders(), [](float low) { return low != 0.0F; });
    };
    const auto everything = [&](auto& visit) {
        visit("optimizer", optimizer);
        visit("average", average);
    };
    optimizer.step();
    average.update();
    CHECK(any_remainder());
    mp::load_checkpoint(path, everything);
    CHECK(average.update_count() == 5);
    CHECK(std::ranges::equal(average.values(),
                             std::vector<float>{0x1.ba9332p-1F, -0x1.4bee64p+1F, -0x1.65f998p-1F}));
    CHECK(!any_remainder());

    const test_folder folder;
    optimizer.step();
    average.update();
    CHECK(any_remainder());
    const std::vector<float> values(average.values().begin(), average.values().end());
    const std::vector<float> remainders(average.remainders().begin(), average.remainders().end());
    mp::save_checkpoint(folder.file("x"), everything);
    average.update();
    average.update();
    CHECK(!std::ranges::equal(average.remainders(), remainders));
    mp::load_checkpoint(folder.file("x"), everything);
    CHECK(std::ranges::equal(average.values(), values));
    CHECK(std::ranges::equal(average.remainders(), remainders));
}

TEST_CASE("a run is saved between iterations") {
    const test_folder folder;
    half_run under_way(mp::sgd_options{.learning_rate = 0.1});
    static_cast<void>(under_way.scaler.current_scale());
    under_way.scaler.unscale(under_way.optimizer);
    CHECK(
        holds(thrown<mp::state_error>([&] { under_way.save(folder.file("x")); }), "save between iterations"));
    CHECK(folder.count() == 0);
}

TEST_CASE("a state of a scaler that is not one changes nothing") {
    const test_folder folder;
    const std::string path = folder.file("x");
    std::vector<float> w(3, 1.0F);
    std::string text = "no scaler";
    mp::save_checkpoint(path, [&](auto& visit) {
        visit("w", w);
        visit("scaler", text);
    });
    mp::dynamic_loss_scaler scaler;
    w.assign(3, 2.0F);
    CHECK_THROWS_AS(mp::load_checkpoint(path,
                                        [&](auto& visit) {
                                            visit("w", w);
                                            visit("scaler", scaler);
                                        }),
                    mp::argument_error);
    CHECK(w[0] == 2.0F);
    mp::load_checkpoint(path, [&](auto& visit) {
        visit("w", w);
        visit("scaler", text);
    });
    CHECK(w[0] == 1.0F);
    CHECK(text == "no scaler");
}

namespace {

/// Names a string of its own, which it makes its engine of, after an object without strings.
struct shuffled_data {
    progress inner;
    std::mt19937 engine;
    std::string label;

    template <class Visitor>
    void visit_state(Visitor& visit) {
        visit("inner", inner);
        std::ostringstream out;
        out << engine;
        std::string text = out.str();
        visit("engine", text);
        std::istringstream(text) >> engine;
        visit("label", label);
    }
};

}  // namespace

TEST_CASE("strings of a visit are set in time for what is made of them, and not where loading fails") {
    const test_folder folder;
    const std::string path = folder.file("x");
    shuffled_data first{{}, std::mt19937(7), "a label that is longer than what fits into a string object"};
    shuffled_data second{{}, std::mt19937(8), "two"};
    first.inner.best = 3;
    float w = 1;
    const auto everything = [&](auto& visit) {
        visit("first", first);
        visit("w", w);
        visit("second", second);
    };
    mp::save_checkpoint(path, everything);
    const std::mt19937 engines[] = {first.engine, second.engine};
    const std::string label = first.label;
    const auto change = [&] {
        w = 2;
        first.inner.best = 4;
        first.engine.seed(1);
        second.engine.seed(2);
        first.label = second.label = "changed";
    };
    change();
    mp::load_checkpoint(path, everything);
    CHECK(first.engine == engines[0]);
    CHECK(second.engine == engines[1]);
    CHECK(first.label == label);
    CHECK(second.label == "two");
    CHECK(first.inner.best == 3);
    CHECK(w == 1.0F);

    change();
    CHECK_THROWS_AS(mp::load_checkpoint(path,
                                        [&](auto& visit) {
                                            everything(visit);
                                            visit("absent", w);
                                        }),
                    mp::file_error);
    CHECK(first.engine == std::mt19937(1));
    CHECK(first.label == "changed");
    CHECK(w == 2.0F);
}

TEST_CASE("structures, enumerators and matrices are saved by their members") {
    const test_folder folder;
    const std::string path = folder.file("x");
    progress saved{phase::training, 1.5, {7, -3}, true};
    mp::layerwise_scaler layerwise;
    mp::gradient_accumulator accumulator(2);
    mp::save_checkpoint(path, [&](auto& visit) {
        visit("progress", saved);
        visit("layerwise", layerwise);
        visit("accumulator", accumulator);
    });
    progress loaded;
    mp::load_checkpoint(path, [&](auto& visit) {
        visit("progress", loaded);
        visit("layerwise", layerwise);
        visit("accumulator", accumulator);
    });
    CHECK(loaded.present == phase::training);
    CHECK(loaded.best == 1.5);
    CHECK(loaded.order == std::vector<std::int64_t>{7, -3});
    CHECK(loaded.improved);
    float values[6] = {};
    CHECK(holds(thrown<mp::argument_error>([&] {
                    mp::save_checkpoint(path,
                                        [&](auto& visit) { visit("m", mp::row_major(values, 2, 2, 3)); });
                }),
                "must be row-major and without gaps"));
}
