// SPDX-License-Identifier: MIT
// The model of examples/train_gpt in float on the ranks of MPI, for bench/torch/ddp.py; on one rank also as it sends its
// buckets, for bench/ranks. Rank 0 prints a line of JSON.
#include <mp/autocast.hpp>
#include <mp/frontends/interop/mpi.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/train_gpt/gpt.hpp"

namespace {

using timer = std::chrono::steady_clock;
double milliseconds(timer::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

struct arguments {
    std::map<std::string, std::string> values{
        {"layers", "4"}, {"width", "128"},    {"heads", "4"}, {"context", "128"},          {"batch", "16"},
        {"steps", "12"}, {"wire", "float32"}, {"shard", "0"}, {"bucket-bytes", "8388608"}, {"in-flight", "4"},
        {"alone", "0"},  {"exchange", "0"}};

    explicit arguments(std::span<char* const> words) {
        for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
            const auto found = values.find(std::string(words[i]).substr(2));
            if (found == values.end()) throw std::runtime_error("unknown option " + std::string(words[i]));
            found->second = words[i + 1];
        }
    }
    [[nodiscard]] long operator[](const std::string& name) const { return std::stol(values.at(name)); }
    [[nodiscard]] mp::wire_format wire() const {
        for (const auto it : {mp::wire_format::bfloat16, mp::wire_format::half}) {
            if (values.at("wire") == mp::name_of(it)) return it;
        }
        return mp::wire_format::float32;
    }
};

/// A rank that believes in a second one, which is always there and has the same gradients: what a rank does
/// beside waiting. Remembers when buckets were sent.
class echo_of_one_rank : public mp::single_rank {
public:
    struct sent {
        timer::time_point at;
        std::size_t bytes;
    };
    std::vector<sent> exchanges;

    [[nodiscard]] int size() const { return 2; }
    request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                           std::span<const std::size_t> cuts) {
        exchanges.push_back({timer::now(), cuts[2]});
        std::copy_n(from.begin(), cuts[1], to.begin());
        std::copy_n(from.begin(), cuts[1], to.begin() + static_cast<std::ptrdiff_t>(cuts[1]));
        return {};
    }
};

/// Counts what goes through a communicator.
template <class Ranks>
struct counted {
    using request = typename Ranks::request;
    Ranks& ranks;
    std::uint64_t bytes = 0;  ///< sent to others
    std::uint64_t looks = 0;  ///< calls of finished()

    [[nodiscard]] int rank() const { return ranks.rank(); }
    [[nodiscard]] int size() const { return ranks.size(); }
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return ranks.timeout(); }
    void(max)(std::span<std::uint64_t> values) { (ranks.max)(values); }
    void sum(std::span<std::uint64_t> values) { ranks.sum(values); }
    request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                           std::span<const std::size_t> cuts) {
        bytes += cuts.back() - own(cuts);
        return ranks.start_exchange(from, to, cuts);
    }
    request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts) {
        bytes += own(cuts) * static_cast<std::size_t>(size() - 1);
        return ranks.start_gather(all, cuts);
    }
    bool finished(request& call) {
        ++looks;
        return ranks.finished(call);
    }
    void wait(request& call) { ranks.wait(call); }
    void broadcast(std::span<std::byte> of, int root) { ranks.broadcast(of, root); }

private:
    [[nodiscard]] std::size_t own(std::span<const std::size_t> cuts) const {
        const auto r = static_cast<std::size_t>(rank());
        return cuts[r + 1] - cuts[r];
    }
};

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

template <class Ranks>
void train(const arguments& given, Ranks& world, const std::vector<echo_of_one_rank::sent>* exchanges) {
    counted<Ranks> ranks{world};
    mp::host_workspace workspace;
    const mp::cpu exec{.workspace = &workspace};
    const long context = given["context"], batch = given["batch"], vocabulary = 100;
    examples::train_gpt::gpt<float, mp::autocast::off> model({.vocabulary = vocabulary,
                                                              .context = context,
                                                              .layers = given["layers"],
                                                              .width = given["width"],
                                                              .heads = given["heads"]},
                                                             1);
    mp::broadcast_weights(ranks, model.matrices, model.norms);
    mp::gradient_reduction reduction(exec, ranks,
                                     {.wire = given.wire(),
                                      .bucket_bytes = static_cast<std::size_t>(given["bucket-bytes"]),
                                      .in_flight = static_cast<int>(given["in-flight"]),
                                      .share_only = given["shard"] != 0},
                                     model.matrices, model.norms);
    const mp::adamw_options decayed{.learning_rate = 2e-3, .beta2 = 0.95, .weight_decay = 0.1};
    mp::adamw_options plain = decayed;
    plain.weight_decay = 0;
    auto matrices = mp::shard<mp::adamw<float>>(exec, reduction, model.matrices, std::vector{decayed, plain});
    auto norms = mp::shard<mp::adamw<float>>(exec, reduction, model.norms, plain);
    mp::dynamic_loss_scaler scaler({}, false);

    enum { forward, backward, wait, update, all, parts };
    std::vector<double> times[parts];
    std::vector<std::vector<double>> ready(reduction.bucket_count());
    std::uint64_t bytes = 0, looks = 0;
    const long steps = given["steps"], warm_up = 2;
    double loss = 0;
    std::vector<int> ids(static_cast<std::size_t>(batch * context)), labels(ids.size());
    for (long step = 0; step < steps; ++step) {
        if (step == warm_up) {
            bytes = ranks.bytes;
            looks = ranks.looks;
        }
        // Text in which a token says something about the next one.
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const auto random = mp::random_bits(7 + static_cast<std::uint64_t>(ranks.rank()),
                                                static_cast<std::uint64_t>(step) * ids.size() + i);
            const bool first = i % static_cast<std::size_t>(context) == 0;
            ids[i] = first ? static_cast<int>(random % 100) : labels[i - 1];
            labels[i] = (ids[i] + 1 + static_cast<int>(random % 4)) % 100;
        }
        const timer::time_point begin = timer::now();
        mp::training_iteration iteration(scaler, matrices, norms);
        model.forward(exec, ids, batch);
        const timer::time_point forward_end = timer::now();
        const std::size_t first_exchange = exchanges != nullptr ? exchanges->size() : 0;
        {
            const auto overlap = reduction.backward(iteration.current_scale());
            loss = static_cast<double>(model.backward(exec, labels, {}, false));
        }
        const timer::time_point backward_end = timer::now();
        reduction.finish();
        const timer::time_point finish_end = timer::now();
        iteration.clip_global_gradient_norm(1.0);
        static_cast<void>(iteration.finish());
        const timer::time_point end = timer::now();
        if (step < warm_up) continue;
        times[forward].push_back(milliseconds(forward_end - begin));
        times[backward].push_back(milliseconds(backward_end - forward_end));
        times[wait].push_back(milliseconds(finish_end - backward_end));
        times[update].push_back(milliseconds(end - finish_end));
        times[all].push_back(milliseconds(end - begin));
        if (exchanges == nullptr) continue;
        for (std::size_t b = 0; b < ready.size(); ++b) {
            ready[b].push_back(milliseconds((*exchanges)[first_exchange + b].at - forward_end));
        }
    }
    if (ranks.rank() != 0) return;
    const auto counted_steps = static_cast<double>(steps - warm_up);
    std::printf("{\"ranks\": %d, \"tokens\": %ld, \"parameters\": %zu, \"loss\": %.4f", ranks.size(),
                batch * context * (exchanges == nullptr ? ranks.size() : 1), model.parameter_count(), loss);
    constexpr const char* names[] = {"forward", "backward", "wait", "update", "all"};
    for (int i = 0; i < parts; ++i) std::printf(", \"%s\": %.3f", names[i], median(times[i]));
    std::printf(", \"steps\": [");
    for (std::size_t i = 0; i < times[all].size(); ++i)
        std::printf("%s%.3f", i == 0 ? "" : ", ", times[all][i]);
    std::printf("], \"bytes\": %.0f, \"looks\": %.1f, \"buckets\": %zu, \"early\": %.1f",
                static_cast<double>(ranks.bytes - bytes) / counted_steps,
                static_cast<double>(ranks.looks - looks) / counted_steps, reduction.bucket_count(),
                static_cast<double>(reduction.statistics().buckets_early) / static_cast<double>(steps - 1));
    if (exchanges != nullptr) {
        std::printf(", \"sent\": [");
        for (std::size_t b = 0; b < ready.size(); ++b) {
            std::printf("%s[%.3f, %zu]", b == 0 ? "" : ", ", median(ready[b]), (*exchanges)[b].bytes);
        }
        std::printf("]");
    }
    std::printf("}\n");
}

/// The time per byte of an exchange, in nanoseconds, for a message size in bytes.
void exchange(mp::mpi_communicator& ranks, std::size_t bytes) {
    const auto count = static_cast<std::size_t>(ranks.size());
    std::vector<std::byte> from(bytes), to(bytes);
    std::vector<std::size_t> cuts;
    for (std::size_t r = 0; r <= count; ++r) cuts.push_back(bytes * r / count);
    to.resize((cuts[1] - cuts[0] + 1) * count);
    const auto part =
        cuts[static_cast<std::size_t>(ranks.rank()) + 1] - cuts[static_cast<std::size_t>(ranks.rank())];
    std::vector<double> times;
    for (int i = 0; i < 200; ++i) {
        const timer::time_point begin = timer::now();
        auto call = ranks.start_exchange(from, std::span(to).first(part * count), cuts);
        while (!ranks.finished(call)) {
        }
        times.push_back(milliseconds(timer::now() - begin));
    }
    const auto moved = static_cast<double>(bytes - part + part * (count - 1));
    if (ranks.rank() == 0) std::printf("{\"copy\": %.4f}\n", 1e6 * median(times) / moved);
}

}  // namespace

int main(int argc, char** argv) {
    int level = MPI_THREAD_SINGLE;
    mp::check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    try {
        const arguments given(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
        if (given["alone"] != 0) {
            echo_of_one_rank echo;
            train(given, echo, &echo.exchanges);
        } else {
            mp::mpi_communicator world(MPI_COMM_WORLD);
            if (given["exchange"] != 0) {
                exchange(world, static_cast<std::size_t>(given["exchange"]));
            } else {
                train(given, world, nullptr);
            }
        }
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "ddp: %s\n", problem.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
}
