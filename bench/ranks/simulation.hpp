// SPDX-License-Identifier: MIT
/// \file
/// A model of a data-parallel training step: the measured times of one rank, links, and the reduction of gradients in
/// buckets as mp::gradient_reduction does it. Times are in seconds, sizes in bytes where nothing else is said.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

namespace bench::ranks {

/// A parameter's gradient, in the order in which the backward pass completes them.
struct gradient {
    double ready;     ///< after the beginning of the backward pass; ascending
    double elements;  ///< 4 bytes each: gradients and weights are float
};

/// What one rank takes by itself.
struct rank_times {
    double forward = 0;
    double backward = 0;
    double update = 0;  ///< of all parameters: optimizer and norm
    std::vector<gradient> gradients;
};

/// What the processor of a rank does to reduce an element.
struct element_costs {
    double pack = 0;  ///< to the wire's format
    double sum = 0;   ///< of one contribution: every rank adds up N of them for 1 / N of the elements
    double unpack = 0;
};

/// The link of a rank to all others, through a switch that is no bottleneck (LogGP: L, o and G).
struct network_link {
    double latency = 0;   ///< until a message arrives, besides what follows
    double overhead = 0;  ///< of a message where it is sent: the least time between two
    double bandwidth =
        std::numeric_limits<double>::infinity();  ///< bytes a second, in each direction at once
    double copy = 0;  ///< what the processor does for a byte that is sent or received
};

enum class algorithm {
    pairwise,            ///< mp: parts to all ranks at once, sums, and sums to all ranks at once
    ring,                ///< N - 1 steps to the next rank, twice
    halving_doubling,    ///< recursive halving and doubling (Rabenseifner)
    recursive_doubling,  ///< everything to a partner, log2(N) times
};
inline constexpr std::array all_algorithms{algorithm::pairwise, algorithm::ring, algorithm::halving_doubling,
                                           algorithm::recursive_doubling};
constexpr std::string_view name_of(algorithm it) {
    constexpr std::array<std::string_view, 4> names{"pairwise (mp)", "ring", "halving and doubling",
                                                    "recursive doubling"};
    return names[static_cast<std::size_t>(it)];
}

struct reduction {
    int ranks = 1;
    algorithm by = algorithm::pairwise;
    double wire_size = 4;  ///< bytes of an element between ranks
    element_costs costs;
    double bucket_bytes = 8 << 20;  ///< of gradients; a larger parameter has its own bucket
    int in_flight = 4;
    bool shard = false;  ///< gradients are reduced to shares, and the weights of all shares are gathered
};

/// A collective call: it holds the link for a time, and ends a latency later.
struct transfer {
    double busy = 0;
    double latency = 0;
    double copies = 0;  ///< of the processor, when it begins
    double sent = 0;    ///< bytes
};

/// N - 1 messages of a part each, all at once: half of a pairwise reduction.
inline transfer to_all(const network_link& over, double ranks, double bytes) {
    if (ranks < 2) return {};
    const double part = bytes / ranks;
    return {(ranks - 1) * std::max(over.overhead, part / over.bandwidth), over.latency,
            2 * (ranks - 1) * part * over.copy, (ranks - 1) * part};
}

/// A whole reduction by another algorithm than mp's.
inline transfer all_reduce(const network_link& over, algorithm by, int count, double bytes) {
    if (count < 2) return {};
    const auto ranks = static_cast<double>(count);
    const double share = bytes * (ranks - 1) / ranks;
    const double rounds = std::ceil(std::log2(ranks));
    double messages = 0, sent = 0;
    switch (by) {
        case algorithm::pairwise:
        case algorithm::ring:
            messages = 2 * (ranks - 1);
            sent = 2 * share;
            break;
        case algorithm::halving_doubling:
            messages = 2 * rounds;
            sent = 2 * share;
            break;
        case algorithm::recursive_doubling:
            messages = rounds;
            sent = rounds * bytes;
            break;
    }
    // Where ranks are no power of two, some hand their gradients to a partner first, and get the sums back.
    const bool folds = by != algorithm::ring && std::exp2(rounds) != ranks;
    if (folds && by == algorithm::halving_doubling) messages -= 2;
    if (folds && by == algorithm::recursive_doubling) {
        messages -= 1;
        sent -= bytes;
    }
    if (folds) {
        messages += 2;
        sent += 2 * bytes;
    }
    return {messages * over.overhead + sent / over.bandwidth, messages * over.latency, 2 * sent * over.copy,
            sent};
}

/// What came out of a step.
struct step {
    double all = 0;
    double waited = 0;  ///< from the end of the backward pass to the sums
    double busy = 0;    ///< of the processor, for reducing
    double sent = 0;    ///< bytes, by a rank
    std::size_t buckets = 0;
};

namespace detail {

struct bucket {
    enum { waiting, exchanging, summed, gathering, done } phase = waiting;
    double elements = 0;
    std::size_t last = 0;  ///< its last parameter
    double ends = 0;       ///< the call under way
};

/// Whole parameters in the order of completion, as detail::bucket_plan has them.
inline std::vector<bucket> buckets_of(const std::vector<gradient>& gradients, double bucket_bytes) {
    std::vector<bucket> all;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const double elements = gradients[i].elements;
        if (all.empty() || 4 * (all.back().elements + elements) > bucket_bytes) all.emplace_back();
        all.back().elements += elements;
        all.back().last = i;
    }
    return all;
}

/// The processor and the link of a rank, step by step as in mp::gradient_reduction::progress().
class machine {
public:
    machine(const rank_times& one, const network_link& over, const reduction& how)
        : over_(over), how_(how), buckets_(buckets_of(one.gradients, how.bucket_bytes)) {
        double before = 0;
        for (std::size_t i = 0; i < one.gradients.size(); ++i) {
            now_ += one.gradients[i].ready - before;
            before = one.gradients[i].ready;
            complete_ = i + 1;
            progress();
        }
        now_ += one.backward - before;
        const double end_of_backward = now_;
        finishing_ = true;
        for (progress(); first_open_ < buckets_.size(); progress()) {
            double next = std::numeric_limits<double>::infinity();
            for (const bucket& it : buckets_) {
                if (it.phase == bucket::exchanging || it.phase == bucket::gathering)
                    next = std::min(next, it.ends);
            }
            now_ = std::max(now_, next);
        }
        result_.waited = now_ - end_of_backward;
        result_.buckets = buckets_.size();
    }
    [[nodiscard]] double now() const { return now_; }
    [[nodiscard]] const step& result() const { return result_; }

private:
    void work(double time) {
        now_ += time;
        result_.busy += time;
    }
    [[nodiscard]] double ranks() const { return static_cast<double>(how_.ranks); }

    double start(const transfer& call) {
        work(call.copies);
        result_.sent += call.sent;
        link_free_ = std::max(link_free_, now_) + call.busy;
        return link_free_ + call.latency;
    }
    void progress() {
        const bool pairwise = how_.by == algorithm::pairwise;
        for (std::size_t b = first_open_; b < next_launch_; ++b) {
            bucket& it = buckets_[b];
            if (it.phase == bucket::exchanging && it.ends <= now_) {
                // Shares have N contributions each; rings and trees add as many elements on the way.
                const double sums =
                    how_.by == algorithm::recursive_doubling ? std::ceil(std::log2(ranks())) : 1;
                work(sums * it.elements * how_.costs.sum);
                it.phase = how_.shard ? bucket::done : bucket::summed;
            }
            if (it.phase == bucket::summed && next_gather_ == b) {
                ++next_gather_;
                it.ends = pairwise ? start(to_all(over_, ranks(), it.elements * how_.wire_size)) : now_;
                it.phase = bucket::gathering;
            }
            if (it.phase == bucket::gathering && it.ends <= now_) {
                work(it.elements * how_.costs.unpack);
                it.phase = bucket::done;
            }
        }
        while (first_open_ < next_launch_ && buckets_[first_open_].phase == bucket::done) ++first_open_;
        while (next_launch_ < buckets_.size() && can_launch()) launch(buckets_[next_launch_++]);
    }
    [[nodiscard]] bool can_launch() const {
        const auto under_way =
            std::count_if(buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(next_launch_),
                          [](const bucket& it) { return it.phase != bucket::done; });
        if (under_way >= how_.in_flight) return false;
        // The last bucket carries what ranks must agree on at the end.
        return finishing_ || (buckets_[next_launch_].last < complete_ && next_launch_ + 1 != buckets_.size());
    }
    void launch(bucket& it) {
        work(it.elements * how_.costs.pack);
        const double bytes = it.elements * how_.wire_size;
        // A share needs half of a reduction, whatever the algorithm.
        it.ends = start(how_.by == algorithm::pairwise || how_.shard
                            ? to_all(over_, ranks(), bytes)
                            : all_reduce(over_, how_.by, how_.ranks, bytes));
        it.phase = bucket::exchanging;
    }

    network_link over_;
    reduction how_;
    std::vector<bucket> buckets_;
    double now_ = 0;
    double link_free_ = 0;
    std::size_t complete_ = 0;
    std::size_t first_open_ = 0;
    std::size_t next_launch_ = 0;
    std::size_t next_gather_ = 0;
    bool finishing_ = false;
    step result_;
};

}  // namespace detail

/// A step of one of `how.ranks` equal ranks, each with the batch of `one`.
inline step simulate(const rank_times& one, const network_link& over, const reduction& how) {
    if (how.ranks < 2) return {one.forward + one.backward + one.update, 0, 0, 0, 0};
    const detail::machine after(one, over, how);
    step result = after.result();
    result.all = one.forward + after.now() + one.update;
    if (how.shard) {
        double elements = 0;
        for (const gradient& it : one.gradients) elements += it.elements;
        const transfer weights = to_all(over, static_cast<double>(how.ranks), 4 * elements);
        result.all += one.update / static_cast<double>(how.ranks) - one.update + weights.copies +
                      weights.busy + weights.latency;
        result.busy += weights.copies;
        result.sent += weights.sent;
    }
    return result;
}

/// The size of buckets, a power of two from 64 KiB to 512 MiB, with which a step is fastest; the largest of those that
/// are within a thousandth of it.
inline double best_bucket_bytes(const rank_times& one, const network_link& over, reduction how) {
    constexpr int smallest = 16, largest = 29;
    std::array<double, largest + 1> times{};
    double least = std::numeric_limits<double>::infinity();
    for (int power = smallest; power <= largest; ++power) {
        how.bucket_bytes = std::exp2(power);
        times[static_cast<std::size_t>(power)] = simulate(one, over, how).all;
        least = std::min(least, times[static_cast<std::size_t>(power)]);
    }
    int power = largest;
    while (times[static_cast<std::size_t>(power)] > 1.001 * least) --power;
    return std::exp2(power);
}

}  // namespace bench::ranks
