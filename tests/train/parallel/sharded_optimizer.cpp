// SPDX-License-Identifier: MIT
// Optimizers whose state is shared among ranks do, to the bit, what whole ones do on every rank.
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

template <class Weight>
struct model {
    mp::parameter_store<Weight> store;
    model() {
        store.add_matrix("w1", 150, 100, mp::initializers::normal(0.1));
        store.add_vector("b1", 150, mp::initializers::zeros(), {.group = 1});
        store.add_matrix("w2", 70, 130, mp::initializers::normal(0.1));
        store.add_vector("b2", 1, mp::initializers::normal(1.0), {.group = 1});
        store.build(3);
    }
    /// Gradients of rank `rank`; those of a step that is to be skipped have an infinity in one place.
    void fill(int rank, std::uint64_t step, float scale, bool overflows) {
        std::uint64_t place = 0;
        for (auto& it : store.parameters()) {
            for (auto& value : it.gradient) {
                const double bits = static_cast<double>(
                    mp::random_bits(99 + static_cast<std::uint64_t>(rank), step * 100'000 + place++));
                value = static_cast<Weight>(scale * static_cast<float>(bits * 0x1p-32 - 0.5));
            }
        }
        if (overflows) store.parameters()[2].gradient[77] = std::numeric_limits<Weight>::infinity();
    }
};

struct outcome {
    std::vector<std::uint64_t> weights;  ///< digests after every step
    std::vector<double> norms;
    std::vector<float> scales;
    std::string checkpoint;

    bool operator==(const outcome&) const = default;
};

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

constexpr std::uint64_t steps = 7;

/// Trains, whole on every rank or shared; `optimizer` is either.
template <class Weight, class Ranks, class Reduction, class Optimizer, class Save>
outcome train(Ranks& ranks, model<Weight>& net, Reduction& reduction, Optimizer& optimizer, double clip,
              std::uint64_t first, mp::dynamic_loss_scaler& scaler, Save save) {
    outcome result;
    for (std::uint64_t step = first; step < steps; ++step) {
        mp::training_iteration iteration(scaler, optimizer);
        optimizer.set_learning_rate_factor(1.0 / static_cast<double>(step + 1));
        net.fill(ranks.rank(), step, iteration.current_scale(), step == 3 && ranks.rank() == 0);
        static_cast<void>(reduction.backward(iteration.current_scale()));
        reduction.finish();
        if (clip > 0) result.norms.push_back(iteration.clip_global_gradient_norm(clip));
        CHECK(static_cast<bool>(iteration.finish()) == (step != 3));
        mp::require_same_weights(ranks, net.store);
        result.weights.push_back(mp::detail::digest_of_weights(net.store));
        result.scales.push_back(scaler.current_scale());
        if (step == 4) save();
    }
    return result;
}

mp::dynamic_loss_scaler new_scaler() {
    return mp::dynamic_loss_scaler({.initial_scale = 1024.0F, .growth_interval = 2});
}

template <class Optimizer, class Options>
outcome whole(int ranks, const std::vector<Options>& options, double clip, const std::string& path) {
    outcome result;
    mp::run_loopback(ranks, [&](auto& self) {
        model<typename Optimizer::weight_type> net;
        mp::gradient_reduction reduction(mp::cpu{}, self, {.bucket_bytes = 10000}, net.store);
        Optimizer optimizer(net.store.parameters(), options);
        auto scaler = new_scaler();
        const auto everything = [&](auto& visit) {
            visit("optimizer", optimizer);
            visit("scaler", scaler);
        };
        outcome mine = train(self, net, reduction, optimizer, clip, 0, scaler, [&] {
            if (self.rank() == 0) mp::save_checkpoint(path, everything);
        });
        if (self.rank() == 0) result = mine;
    });
    result.checkpoint = bytes_of(path);
    return result;
}

template <class Optimizer, class Options>
outcome shared(int ranks, const std::vector<Options>& options, double clip, const std::string& path,
               bool resumes = false) {
    outcome result;
    mp::run_loopback(ranks, [&](auto& self) {
        model<typename Optimizer::weight_type> net;
        mp::gradient_reduction reduction(mp::cpu{}, self, {.bucket_bytes = 10000, .share_only = true},
                                         net.store);
        auto optimizer = mp::shard<Optimizer>(mp::cpu{}, reduction, net.store, options);
        auto scaler = new_scaler();
        const auto everything = [&](auto& visit) {
            visit("optimizer", optimizer);
            visit("scaler", scaler);
        };
        if (resumes) mp::load_checkpoint(self, path, everything);
        outcome mine = train(self, net, reduction, optimizer, clip, resumes ? 5 : 0, scaler,
                             [&] { mp::save_checkpoint(self, path, everything); });
        if (self.rank() == 0) result = mine;
        if (ranks == 4) {
            // A quarter of the state, but for where parameters and chunks may be cut.
            const std::size_t all = net.store.count();
            constexpr std::size_t each = 4 * (Optimizer::has_master_copy ? 1 : 0) + 8;
            if constexpr (std::is_same_v<typename Optimizer::state_type, float>) {
                CHECK(optimizer.state_bytes() <= (all / 4 + 4096) * each);
            }
        }
    });
    if (!resumes) result.checkpoint = bytes_of(path);
    return result;
}

template <class Optimizer, class Options>
void compare(const std::vector<Options>& options, double clip) {
    const auto folder = std::filesystem::temp_directory_path();
    for (const int ranks : {1, 2, 3, 4, 6}) {
        CAPTURE(ranks);
        const std::string path = (folder / ("mp_shards_" + std::to_string(ranks))).string();
        const outcome expected = whole<Optimizer>(ranks, options, clip, path);
        const outcome found = shared<Optimizer>(ranks, options, clip, path);
        CHECK(expected.weights.size() == steps);
        CHECK(found.weights == expected.weights);
        CHECK(found.norms.size() == expected.norms.size());
        for (std::size_t i = 0; i < found.norms.size(); ++i) {
            if (i != 3) CHECK(found.norms[i] == expected.norms[i]);
        }
        CHECK(found.scales == expected.scales);
        // The file is that of one rank that has everything.
        CHECK(!expected.checkpoint.empty());
        CHECK(found.checkpoint == expected.checkpoint);
        // From it, the run goes on to the same bits.
        const outcome rest = shared<Optimizer>(ranks, options, clip, path, true);
        REQUIRE(rest.weights.size() == 2);
        CHECK(rest.weights[0] == expected.weights[5]);
        CHECK(rest.weights[1] == expected.weights[6]);
        std::filesystem::remove(path);
    }
}

}  // namespace

TEST_CASE("shared AdamW with float masters trains to the bits of a whole one, clipped and scaled") {
    compare<mp::adamw<mp::bfloat16>>(
        std::vector<mp::adamw_options>{{.learning_rate = 1e-2, .weight_decay = 0.1},
                                       {.learning_rate = 2e-2, .weight_decay = 0.0}},
        0.7);
    compare<mp::adamw<mp::half>>(std::vector<mp::adamw_options>{{.learning_rate = 1e-2}, {}}, 0.0);
}

TEST_CASE("so do other optimizers and other memory") {
    compare<mp::sgd<float>>(std::vector<mp::sgd_options>{{.learning_rate = 0.1, .momentum = 0.9},
                                                         {.learning_rate = 0.1, .momentum = 0.9}},
                            1.0);
    compare<mp::lion<mp::bfloat16>>(std::vector<mp::lion_options>{{}, {}}, 0.0);
    // Random bits go by the place in the whole parameter.
    const mp::adamw_options stochastic{.low_precision_update = mp::weight_update::stochastic, .seed = 5};
    compare<mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>>(
        std::vector<mp::adamw_options>{stochastic, stochastic}, 0.5);
    const mp::adamw_options kahan{.low_precision_update = mp::weight_update::kahan};
    compare<mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, mp::bfloat16>>(
        std::vector<mp::adamw_options>{kahan, kahan}, 0.0);
    compare<mp::adamw<float, float, float, mp::block_moment>>(
        std::vector<mp::adamw_options>{{.learning_rate = 1e-2}, {.learning_rate = 1e-2}}, 0.5);
}

TEST_CASE("a checkpoint of some ranks is loaded by others, and by a program without ranks") {
    const std::string path = (std::filesystem::temp_directory_path() / "mp_reshard").string();
    const std::vector<mp::adamw_options> options{{}, {}};
    static_cast<void>(shared<mp::adamw<mp::bfloat16>>(3, options, 0.0, path));
    std::vector<std::uint64_t> digests;
    for (const int ranks : {1, 2, 5}) {
        mp::run_loopback(ranks, [&](auto& self) {
            model<mp::bfloat16> net;
            mp::gradient_reduction reduction(mp::cpu{}, self, {.share_only = true}, net.store);
            auto optimizer = mp::shard<mp::adamw<mp::bfloat16>>(mp::cpu{}, reduction, net.store, options);
            auto scaler = new_scaler();
            const auto everything = [&](auto& visit) {
                visit("optimizer", optimizer);
                visit("scaler", scaler);
            };
            mp::load_checkpoint(self, path, everything);
            mp::require_same_weights(self, net.store);
            if (self.rank() == 0) digests.push_back(mp::detail::digest_of_weights(net.store));
            mp::save_checkpoint(self, path + ".again", everything);
        });
        CHECK(bytes_of(path) == bytes_of(path + ".again"));
    }
    model<mp::bfloat16> net;
    mp::adamw<mp::bfloat16> optimizer(net.store.parameters(), options);
    auto scaler = new_scaler();
    mp::load_checkpoint(path, [&](auto& visit) {
        visit("optimizer", optimizer);
        visit("scaler", scaler);
    });
    digests.push_back(mp::detail::digest_of_weights(net.store));
    CHECK(digests == std::vector<std::uint64_t>(4, digests[0]));
    std::filesystem::remove(path);
    std::filesystem::remove(path + ".again");
}

TEST_CASE("what one rank cannot save or load, none does") {
    const std::string path = (std::filesystem::temp_directory_path() / "mp_rank_failure").string();
    std::atomic<int> refused = 0;
    std::ofstream(path) << "an older one";
    mp::run_loopback(3, [&](auto& self) {
        std::vector<float> values(10, 1.0F);
        const auto everything = [&](auto& visit) {
            if (self.rank() == 1) throw mp::state_error("not now");
            visit("values", values);
        };
        const auto save = [&] { mp::save_checkpoint(self, path, everything); };
        const auto load = [&] { mp::load_checkpoint(self, path, everything); };
        for (int i = 0; i < 2; ++i) {
            const bool good =
                self.rank() == 1
                    ? holds(i == 0 ? thrown<mp::state_error>(save) : thrown<mp::file_error>(load),
                            i == 0 ? "not now" : "")
                    : holds(i == 0 ? thrown<mp::file_error>(save) : thrown<mp::file_error>(load),
                            i == 0 ? "rank 1 has failed" : "");
            if (good) ++refused;
        }
        // Ranks that would save something else.
        if (holds(thrown<mp::rank_error>([&] {
                      mp::save_checkpoint(self, path, [&](auto& visit) {
                          visit(self.rank() == 2 ? "value" : "other", values);
                      });
                  }),
                  "mp::save_checkpoint: the ranks differ"))
            ++refused;
        if (holds(thrown<mp::file_error>([&] {
                      mp::save_checkpoint(self, path + "/no/such/folder",
                                          [&](auto& visit) { visit("v", values); });
                  }),
                  self.rank() == 0 ? "cannot be written" : "rank 0 has failed"))
            ++refused;
    });
    CHECK(refused == 12);
    CHECK(bytes_of(path) == "an older one");
    CHECK(!std::filesystem::exists(path + ".part"));
    std::filesystem::remove(path);
}

TEST_CASE("a reduction that leaves all gradients on all ranks: every rank holds everything") {
    std::vector<std::uint64_t> digests(2);
    mp::run_loopback(2, [&](auto& self) {
        for (const bool shared : {false, true}) {
            model<mp::half> net;
            mp::any_communicator any(self);
            mp::gradient_reduction reduction(mp::cpu{}, any, {.share_only = shared}, net.store);
            auto optimizer = mp::shard<mp::adamw<mp::half>>(mp::cpu{}, reduction, net.store,
                                                            std::vector<mp::adamw_options>{{}, {}});
            auto scaler = new_scaler();
            CHECK((optimizer.state_bytes() == 12 * net.store.count()) == !shared);
            const outcome result = train(any, net, reduction, optimizer, 0.4, 0, scaler, [] {});
            if (self.rank() == 1) digests[shared ? 1 : 0] = result.weights.back();
        }
    });
    CHECK(digests[0] == digests[1]);
}

TEST_CASE("a store that is not reduced, and a save of shares by one rank") {
    std::atomic<int> refused = 0;
    mp::run_loopback(2, [&](auto& self) {
        model<float> mine;
        mp::gradient_reduction reduction(mp::cpu{}, self, {.share_only = true}, mine.store);
        model<float> other;
        if (holds(thrown<mp::argument_error>([&] {
                      static_cast<void>(mp::shard<mp::sgd<float>>(mp::cpu{}, reduction, other.store));
                  }),
                  "mp::sharded_optimizer: store is 'w1'; it must be among the parameters that are reduced"))
            ++refused;
        auto optimizer = mp::shard<mp::adamw<float>>(mp::cpu{}, reduction, mine.store,
                                                     std::vector<mp::adamw_options>{{}, {}});
        if (holds(thrown<mp::state_error>([&] {
                      mp::save_checkpoint("nowhere", [&](auto& visit) { visit("optimizer", optimizer); });
                  }),
                  "is shared among ranks; save it by mp::save_checkpoint(ranks, path, everything)"))
            ++refused;
    });
    CHECK(refused == 4);
}
