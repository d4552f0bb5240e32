// SPDX-License-Identifier: MIT
/// \file
/// Which examples of a data set every rank takes in a step, as a function of the step.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/train/parallel/agreement.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace mp {

/// What becomes of the examples that are left when an epoch is no multiple of the global batch.
enum class epoch_remainder : unsigned char {
    carry,  ///< the step goes on with the next epoch: every example exactly once an epoch
    drop,   ///< they are left out, others in every epoch, as with drop_last of torch's DistributedSampler
    pad,    ///< the step is filled up with the first examples of the same epoch, as without it
};

/// Equal on all ranks. A run that is resumed on fewer ranks keeps its global batch by accumulating more.
struct sampler_options {
    std::uint64_t examples = 0;    ///< of the data set
    std::uint64_t batch = 1;       ///< examples of a micro batch
    std::uint64_t accumulate = 1;  ///< micro batches of a rank in a step
    std::uint64_t seed = 0;
    bool shuffle = true;  ///< another order in every epoch; else that of the data set
    epoch_remainder remainder = epoch_remainder::carry;
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A random permutation of 0 ... size - 1 that is computed where it is looked at, without memory, in a fifth
/// of a microsecond. The same on every machine.
///
/// A Feistel network, in each round of which one half moves by a function of the other, on the pairs (low,
/// high) of [0, width) x [0, height), of which x is low + high * width. A round can be undone, since the half
/// that it depends on stays as it is, so the network is a bijection P of width * height >= size numbers. From
/// x < size, P is repeated until the result is below size again (cycle walking: Black and Rogaway, "Ciphers with
/// arbitrary finite domains", CT-RSA 2002). It ends, since the cycle of P through x comes back to x; and it is
/// a bijection of [0, size), since walking by the inverse of P undoes it. width is a power of two near the
/// square root, so that width * height < size + width and most walks are one step; that it is even makes odd
/// permutations possible.
class random_permutation {
public:
    /// \param size   from 1
    /// \param epoch  another permutation for each
    constexpr random_permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch = 0) noexcept
        : size_(size) {
        while ((size - 1) >> shift_ >> shift_ != 0) ++shift_;
        height_ = ((size - 1) >> shift_) + 1;
        // Disjoint from the words of random_bits() and of initializers by the last word of the counter.
        const philox4x32 words = detail::random_block(seed, epoch, 0, 0x73687566U);
        key_ = words.word[0] | std::uint64_t{words.word[1]} << 32;
        increment_ = words.word[2] | std::uint64_t{words.word[3]} << 32 | 1U;
    }

    [[nodiscard]] constexpr std::uint64_t size() const noexcept { return size_; }

    /// What stands at place i < size().
    [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t i) const noexcept {
        do {
            i = network(i);
        } while (i >= size_);
        return i;
    }

private:
    /// With 8, some orders of 5 to 8 elements come far too often; from 20 on, none does that 20 draws of each show.
    static constexpr std::uint64_t rounds = 24;

    [[nodiscard]] constexpr std::uint64_t network(std::uint64_t x) const noexcept {
        const std::uint64_t width = std::uint64_t{1} << shift_;
        std::uint64_t low = x & (width - 1);
        std::uint64_t high = x >> shift_;
        for (std::uint64_t round = 0; round < rounds; round += 2) {
            low = moved(low, width, high, round);
            high = moved(high, height_, low, round + 1);
        }
        return low + (high << shift_);
    }
    /// part + f(other) modulo size, which is at most 2^32; a random word w makes floor(w * size / 2^32). It is
    /// the upper half of MurmurHash3's finalizer (A. Appleby), whose every bit depends on all of its argument.
    [[nodiscard]] constexpr std::uint64_t moved(std::uint64_t part, std::uint64_t size, std::uint64_t other,
                                                std::uint64_t round) const noexcept {
        std::uint64_t x = other ^ (key_ + round * increment_);
        x = (x ^ x >> 33) * 0xff51afd7ed558ccdU;
        x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53U;
        const std::uint64_t sum = part + ((x >> 32) * size >> 32);
        return sum < size ? sum : sum - size;
    }

    std::uint64_t size_;
    std::uint64_t height_ = 1;
    std::uint64_t key_ = 0;
    std::uint64_t increment_ = 1;
    int shift_ = 0;
};

/// Deals a data set out to the ranks of a run:
///
///     const mp::distributed_sampler sampler({.examples = texts.size(), .batch = 16, .seed = 1}, ranks);
///     std::vector<std::uint64_t> mine(sampler.indices_per_step());
///     for (; step < sampler.steps(epochs); ++step) {
///         sampler.indices(step, mine);    // the same after a resume: there is no state to save
///
/// The examples of an epoch stand in a random order that is a function of seed and epoch, of which a step takes
/// the next global_batch() = batch * accumulate * ranks: first the first micro batches of all ranks, in the
/// order of the ranks, then the second ones. So the ranks together take every example of an epoch once, but
/// for the remainder (see mp::epoch_remainder), and with the same global batch a step has the same examples
/// however many ranks there are.
///
/// Ranks whose samplers have other options take some examples twice and others never, see mp::require_same_sampler.
///
/// Trivially copyable; its functions may be called from any number of threads.
class distributed_sampler {
public:
    /// \param rank   of this process, 0 <= rank < ranks
    /// \throws argument_error  a number of options is 0, or the global batch is 2^63 or more, or with
    ///                         epoch_remainder::drop more than there are examples; ranks or rank is out of range
    constexpr distributed_sampler(const sampler_options& options, int rank, int ranks) : options_(options) {
        require_positive("options.examples", options.examples);
        require_positive("options.batch", options.batch);
        require_positive("options.accumulate", options.accumulate);
        if (ranks < 1) detail::throw_argument(constructor, "ranks", ranks, "must be at least 1");
        if (rank < 0 || rank >= ranks) {
            detail::throw_argument(constructor, "rank", rank,
                                   "must be from 0 to " + detail::error_text(ranks - 1));
        }
        rank_ = static_cast<std::uint64_t>(rank);
        ranks_ = static_cast<std::uint64_t>(ranks);
        constexpr std::uint64_t most = (std::uint64_t{1} << 63) - 1;
        if (options.accumulate > most / ranks_ || options.batch > most / ranks_ / options.accumulate) {
            detail::throw_argument(constructor, "options.batch", options.batch,
                                   "must make a global batch below 2^63 with options.accumulate, " +
                                       detail::error_text(options.accumulate) + ", and ranks, " +
                                       detail::error_text(ranks));
        }
        whole_steps_ = options.examples / global_batch();
        if (options.remainder == epoch_remainder::pad && options.examples % global_batch() != 0) {
            ++whole_steps_;
        }
        if (options.remainder == epoch_remainder::drop && whole_steps_ == 0) {
            detail::throw_argument(constructor, "options.examples", options.examples,
                                   "must be at least the global batch, " +
                                       detail::error_text(global_batch()) +
                                       ", since what is less is dropped");
        }
    }
    /// For this rank of a communicator.
    template <communicator Ranks>
    distributed_sampler(const sampler_options& options, const Ranks& ranks)
        : distributed_sampler(options, ranks.rank(), ranks.size()) {}

    [[nodiscard]] constexpr const sampler_options& options() const noexcept { return options_; }
    /// The rank that it deals to.
    [[nodiscard]] constexpr int rank() const noexcept { return static_cast<int>(rank_); }
    /// The number of ranks that it deals to.
    [[nodiscard]] constexpr int ranks() const noexcept { return static_cast<int>(ranks_); }
    /// Examples that this rank takes in a step.
    [[nodiscard]] constexpr std::uint64_t indices_per_step() const noexcept {
        return options_.batch * options_.accumulate;
    }
    /// Examples that all ranks take in a step.
    [[nodiscard]] constexpr std::uint64_t global_batch() const noexcept {
        return options_.batch * options_.accumulate * ranks_;
    }
    /// The number of steps that `epochs` epochs take, the last one maybe in part.
    ///
    /// \param epochs  times the number of examples it is below 2^64
    [[nodiscard]] constexpr std::uint64_t steps(std::uint64_t epochs) const noexcept {
        if (options_.remainder != epoch_remainder::carry) return epochs * whole_steps_;
        const std::uint64_t taken = epochs * options_.examples;
        return taken / global_batch() + (taken % global_batch() != 0 ? 1 : 0);
    }
    /// The epoch that a step begins in, from 0.
    [[nodiscard]] constexpr std::uint64_t epoch(std::uint64_t step) const noexcept {
        return options_.remainder == epoch_remainder::carry ? step * global_batch() / options_.examples
                                                            : step / whole_steps_;
    }

    /// The example that this rank takes as number i < indices_per_step() of a step; micro batch follows micro
    /// batch. Limits of `step` as with indices().
    [[nodiscard]] constexpr std::uint64_t index(std::uint64_t step, std::uint64_t i) const noexcept {
        const std::uint64_t micro = i / options_.batch;
        const std::uint64_t in_step =
            (micro * ranks_ + rank_) * options_.batch + (i - micro * options_.batch);
        std::uint64_t epoch_of_it = 0;
        std::uint64_t place = 0;
        if (options_.remainder == epoch_remainder::carry) {
            place = step * global_batch() + in_step;
            epoch_of_it = place / options_.examples;
        } else {
            epoch_of_it = step / whole_steps_;
            place = step % whole_steps_ * global_batch() + in_step;
        }
        place %= options_.examples;
        if (!options_.shuffle) return place;
        return random_permutation(options_.examples, options_.seed, epoch_of_it)(place);
    }

    /// The examples that this rank takes in a step: accumulate micro batches of batch each. Allocates nothing.
    ///
    /// \throws argument_error  to.size() is not indices_per_step(); (step + 1) * global_batch() is 2^64 or more
    constexpr void indices(std::uint64_t step, std::span<std::uint64_t> to) const {
        constexpr std::string_view function = "mp::distributed_sampler::indices";
        if (to.size() != indices_per_step()) {
            detail::throw_argument(function, "to.size()", to.size(),
                                   "must be batch * accumulate, " + detail::error_text(indices_per_step()));
        }
        if (step >= (std::numeric_limits<std::uint64_t>::max)() / global_batch()) {
            detail::throw_argument(
                function, "step", step,
                "must be less than 2^64 / " + detail::error_text(global_batch()) + ", the global batch");
        }
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = index(step, i);
    }

private:
    static constexpr std::string_view constructor = "mp::distributed_sampler";

    static constexpr void require_positive(std::string_view name, std::uint64_t value) {
        if (value == 0) detail::throw_argument(constructor, name, value, "must be positive");
    }

    sampler_options options_;
    std::uint64_t rank_ = 0;
    std::uint64_t ranks_ = 1;
    std::uint64_t whole_steps_ = 0;  ///< of an epoch, unless it carries its remainder
};

/// Throws unless the samplers of all ranks deal the same examples, each rank its own: one message of a few bytes, to
/// be called before the first step. Collective.
///
/// \throws argument_error  the samplers are of other ranks, or of another number of ranks, than `ranks` has
/// \throws rank_error      an option differs, or a sampler is of another rank, on all ranks; the message says which
/// \throws rank_timeout    a rank does not come
template <communicator Ranks>
void require_same_sampler(Ranks& ranks, const distributed_sampler& sampler) {
    constexpr std::string_view function = "mp::require_same_sampler";
    const sampler_options& options = sampler.options();
    const bool belongs = sampler.rank() == ranks.rank() && sampler.ranks() == ranks.size();
    const std::uint64_t same[] = {options.examples,          options.batch,
                                  options.accumulate,        options.seed,
                                  options.shuffle ? 1U : 0U, static_cast<std::uint64_t>(options.remainder),
                                  belongs ? 1U : 0U};
    constexpr std::string_view names[] = {
        "options.examples",
        "options.batch",
        "options.accumulate",
        "options.seed",
        "options.shuffle",
        "options.remainder",
        "whether rank and number of ranks of the sampler are those of the communicator"};
    detail::require_same_on_ranks(function, same, detail::reducer_reference(ranks),
                                  [&](std::size_t i) { return std::string(names[i]); });
    if (sampler.ranks() != ranks.size()) {
        detail::throw_argument(function, "sampler.ranks()", sampler.ranks(),
                               "must be that of the communicator, " + detail::error_text(ranks.size()));
    }
    if (sampler.rank() != ranks.rank()) {
        detail::throw_argument(function, "sampler.rank()", sampler.rank(),
                               "must be that of the communicator, " + detail::error_text(ranks.rank()));
    }
}

}}  // namespace mp
