// SPDX-License-Identifier: MIT
/// \file
/// The mean of the gradients of all ranks, while the backward pass goes on.
#pragma once

#include <mp/detail/write_watch.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/format/float_arithmetic.hpp>
#include <mp/parallel/agreement.hpp>
#include <mp/parallel/block_wire.hpp>
#include <mp/parallel/bucket_plan.hpp>
#include <mp/parallel/communicator.hpp>
#include <mp/parallel/wire_format.hpp>
#include <mp/scaling/reducer.hpp>
#include <mp/scaling/unscale.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp {

/// How gradients are reduced. The same on all ranks.
struct reduction_options {
    wire_format wire = wire_format::as_stored;
    std::size_t bucket_bytes = std::size_t{8} << 20;  ///< of gradients; a larger parameter has its own bucket
    bool mean = true;                                 ///< else the sum
    int in_flight = 4;  ///< buckets that are under way at once, each with memory
    /// Every rank gets the sums of its own share only, for mp::sharded_parameters.
    bool share_only = false;
};

/// What reductions have done so far.
struct reduction_statistics {
    std::uint64_t steps = 0;
    std::uint64_t bytes_sent = 0;     ///< to other ranks, by this one
    std::uint64_t buckets = 0;        ///< reduced
    std::uint64_t buckets_early = 0;  ///< of them, those that were sent while the backward pass went on
    double seconds_waited = 0;        ///< in finish(): what was not hidden behind the backward pass
};

}  // namespace mp

namespace mp::inline MP_ISA_NAMESPACE {

/// Makes the gradients of every rank the mean over all ranks, so that replicas of a model train as one on as
/// many times the data:
///
///     mp::mpi_communicator ranks(MPI_COMM_WORLD);
///     mp::broadcast_weights(ranks, store);
///     mp::gradient_reduction reduction(mp::cpu{}, ranks, {.wire = mp::wire_format::bfloat16}, store);
///     for (...) {
///         mp::training_iteration iteration(scaler, optimizer);
///         for (int micro = 0; micro < accumulate; ++micro) {
///             const auto overlap = reduction.backward(iteration.current_scale(), micro + 1 == accumulate);
///             model.backward(...);                // the last pass sends what is complete
///         }
///         reduction.finish();
///         iteration.clip_global_gradient_norm(1.0);
///         iteration.finish();                     // the same on all ranks
///     }
///
/// Afterwards all ranks hold the same bits, so that they find the same infinities and norms, clip, skip and
/// scale alike, and nothing more is to be agreed. Gradients are reduced as the backward pass leaves them,
/// scaled; the mean is taken in float, in the order of the ranks, divided by their number, and rounded once to
/// the wire's format and once to that of the gradients, where these are others. So the same ranks give the
/// same bits, whatever arrives first. A value that is not finite on any rank, or in the wire's format, is not
/// finite on any afterwards, and the step is skipped everywhere.
///
/// Gradients travel in buckets of whole parameters, the last ones first. In the first step, the reduction
/// learns how often the ops of a backward pass write or add to each gradient; from the second on a bucket is
/// sent as soon as all have. Ops of <mp/ops.hpp> on the thread that made the scope are seen; whatever is not
/// complete at finish(), or is not written by an op, is sent then. Ranks whose passes differ wait for each
/// other and do not go wrong: a gradient that is written once more than in the step before, after it was sent,
/// is an error on all ranks.
///
/// With every packed message, the last bucket's at least, travel the step and the loss scale, and ranks that
/// have others are an error on all. Memory: in_flight times twice the largest bucket, in the wire's format;
/// nothing is allocated after the first two steps by the reduction itself. Gradients must not be read or
/// written between their completion and the end of finish().
///
/// Threads: everything happens on the thread that calls backward(), the ops and finish(); messages make
/// progress whenever an op has written a gradient. Sums use the threads of `exec`.
template <communicator Ranks>
class gradient_reduction {
public:
    /// Collective. Compares names, sizes, types and options of all ranks.
    ///
    /// \param ranks       must outlive the reduction
    /// \param parameters  mp::parameter_store objects, or vectors of mp::parameter; their memory must outlive
    ///                    the reduction. Gradients are float, half or bfloat16
    /// \throws argument_error  no parameter, or memory is null or overlaps; bucket_bytes or in_flight is not
    ///                         positive
    /// \throws rank_error      ranks have other parameters or options
    template <class... Parameters>
    gradient_reduction(cpu exec, Ranks& ranks, const reduction_options& options, Parameters&... parameters)
        : exec_(exec),
          ranks_(ranks),
          options_(checked(options)),
          sum_(ranks.size(), options.mean),
          plan_(constructor, ranks.size(), options.wire, options.bucket_bytes) {
        static_assert(sizeof...(Parameters) != 0, "mp::gradient_reduction: name the parameters to reduce");
        detail::check_threads(constructor, exec);
        (plan_.add(parameters), ...);
        plan_.finish();
        const std::array<std::uint64_t, 5> same{
            static_cast<std::uint64_t>(ranks.size()), static_cast<std::uint64_t>(options.wire),
            options.bucket_bytes, options.mean ? 1U : 0U, options.share_only ? 1U : 0U};
        detail::require_same_plan(constructor, plan_, same, detail::reducer_reference(ranks));
        states_.resize(plan_.buckets.size());
        counts_.resize(plan_.parameters.size());
        expected_.resize(plan_.parameters.size());
        if (options.wire == wire_format::mxfp8 && ranks.size() > 1) {
            for (const detail::gradient_bucket& it : plan_.buckets) {
                blocks_.emplace_back(it, self(), !options.share_only);
            }
        }
        if (ranks.size() > 1) allocate();
    }
    gradient_reduction(const gradient_reduction&) = delete;
    gradient_reduction& operator=(const gradient_reduction&) = delete;
    ~gradient_reduction() {
        if (first_open_ < next_launch_) {
            // The communicator may still write there, so it is never freed.
            static_cast<void>(new std::vector<slot>(std::move(slots_)));
        }
    }

    /// While it lives, gradients are sent as they are complete.
    class scope : detail::write_watch {
    public:
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
        ~scope() = default;

    private:
        friend gradient_reduction;
        explicit scope(gradient_reduction* all) : all_(all) {}
        void written(const void* array, bool /*added*/) noexcept override {
            if (all_ != nullptr) all_->written(array);
        }
        gradient_reduction* all_;
    };

    /// To be called before a backward pass, with the loss scale, which all ranks must have.
    ///
    /// \param last  whether the gradients are complete after it; false for all micro batches but the last,
    ///              which cost no message
    /// \returns a scope for the pass; from its end to finish() nothing is sent
    /// \throws state_error  finish() was not called after the last pass of the step before: the optimizer has
    ///                      stepped by the gradients of one rank
    [[nodiscard]] scope backward(float scale, bool last = true) {
        if (begun_) {
            detail::throw_error(state_error(
                "mp::gradient_reduction::backward: the gradients of the pass before have not been "
                "reduced; call finish() before the step of the optimizer"));
        }
        if (!last) return scope(nullptr);
        begun_ = true;
        lost_factor_ = detail::float_divide(scale, lost_scale_);
        record_.scale = scale;
        std::fill(counts_.begin(), counts_.end(), 0U);
        for (std::size_t b = 0; b < states_.size(); ++b) {
            states_[b] = {};
            states_[b].incomplete = plan_.buckets[b].parameters;
        }
        first_open_ = next_launch_ = next_gather_ = 0;
        return scope(alone() ? nullptr : this);
    }

    /// Reduces what is not reduced yet, and waits until all gradients are those of all ranks. Collective.
    ///
    /// \throws state_error   backward(scale) was not called before; or, on all ranks, a gradient was written
    ///                       once more after it had been sent: the gradients are of no use, abandon the
    ///                       iteration
    /// \throws rank_error    the ranks have other loss scales or are at other steps: on all ranks
    /// \throws rank_timeout  a rank does not come
    void finish() {
        constexpr std::string_view function = "mp::gradient_reduction::finish";
        if (!begun_) {
            detail::throw_error(state_error(
                std::string(function) +
                ": there is no pass to reduce; call backward(scale) before the last backward pass"));
        }
        if (!alone()) {
            const auto start = std::chrono::steady_clock::now();
            if (failure_) std::rethrow_exception(failure_);
            finishing_ = true;
            const auto failure = detail::exception_of([&] {
                detail::wait_for_ranks(function, ranks_.timeout(), "save what can be saved and end", [&] {
                    progress();
                    return first_open_ == states_.size();
                });
            });
            finishing_ = false;
            if (failure) {
                failure_ = failure;
                std::rethrow_exception(failure);
            }
            statistics_.seconds_waited +=
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            statistics_.buckets += states_.size();
        }
        std::copy(counts_.begin(), counts_.end(), expected_.begin());
        if (!blocks_.empty()) keep_what_is_lost();
        begun_ = false;
        record_.written_late = 0;
        ++record_.step;
        ++statistics_.steps;
        report(function);
    }

    /// What a run goes on with: under wire_format::mxfp8 what rounding has lost, of all ranks, for
    /// mp::save_checkpoint(ranks, ...); else nothing. As many ranks can load it, and no others.
    ///
    /// \throws state_error  between backward() and finish()
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        if (begun_) {
            detail::throw_error(state_error(
                "mp::gradient_reduction: gradients are under way; save and load between iterations"));
        }
        if (blocks_.empty()) return;
        visitor("scale", lost_scale_);
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            visitor("bucket" + detail::error_text(b), blocks_[b]);
        }
    }

    [[nodiscard]] const reduction_statistics& statistics() const noexcept { return statistics_; }
    [[nodiscard]] const reduction_options& options() const noexcept { return options_; }
    [[nodiscard]] Ranks& ranks() const noexcept { return ranks_; }
    /// Buckets that the gradients are reduced in.
    [[nodiscard]] std::size_t bucket_count() const noexcept { return plan_.buckets.size(); }
    /// For mp::sharded_parameters.
    [[nodiscard]] const detail::bucket_plan& plan() const noexcept { return plan_; }

private:
    static constexpr std::string_view constructor = "mp::gradient_reduction";
    static constexpr std::size_t no_slot = ~std::size_t{0};
    enum class phase : unsigned char { waiting, exchanging, summed, gathering, done };

    struct bucket_state {
        phase present = phase::waiting;
        std::size_t incomplete = 0;  ///< parameters
        std::size_t slot = no_slot;
        typename Ranks::request call{};
    };
    /// Memory of a bucket under way.
    struct slot {
        std::vector<std::byte> packed;
        std::vector<std::byte> received;
        bool used = false;
    };

    static const reduction_options& checked(const reduction_options& options) {
        if (options.bucket_bytes == 0) {
            detail::throw_argument(constructor, "options.bucket_bytes", 0, "must be positive");
        }
        if (options.in_flight < 1) {
            detail::throw_argument(constructor, "options.in_flight", options.in_flight, "must be at least 1");
        }
        return options;
    }
    [[nodiscard]] bool alone() const { return ranks_.size() == 1; }
    [[nodiscard]] std::size_t self() const { return static_cast<std::size_t>(ranks_.rank()); }

    /// Whether a bucket travels from where it lies; the last never does, for what must be agreed is with it.
    [[nodiscard]] bool is_direct(std::size_t b) const {
        const detail::gradient_bucket& bucket = plan_.buckets[b];
        return bucket.codec.same && bucket.segments.size() == 1 && b + 1 != plan_.buckets.size();
    }

    void allocate() {
        std::size_t packed = 0, received = 0;
        for (std::size_t b = 0; b < states_.size(); ++b) {
            const detail::gradient_bucket& bucket = plan_.buckets[b];
            const bool direct = is_direct(b);
            std::vector<std::size_t>& cuts = byte_cuts_.emplace_back();
            for (std::size_t r = 0; r < bucket.cuts.size(); ++r) {
                if (r == 0) {
                    cuts.push_back(0);
                    continue;
                }
                const std::size_t part = bucket.cuts[r] - bucket.cuts[r - 1];
                cuts.push_back(
                    cuts.back() +
                    (blocks_.empty() ? part * bucket.codec.wire_size : detail::block_codes::bytes(part)) +
                    (direct ? 0 : sizeof(detail::agreement_record)));
            }
            if (!direct) packed = (std::max)(packed, cuts.back());
            received = (std::max)(received, (cuts[self() + 1] - cuts[self()]) * (cuts.size() - 1));
        }
        slots_.resize((std::min)(states_.size(), static_cast<std::size_t>(options_.in_flight)));
        for (slot& it : slots_) {
            it.packed.resize(packed);
            it.received.resize(received);
        }
    }

    void written(const void* array) noexcept {
        const std::size_t i = plan_.parameter_at(array);
        if (i == no_index) return;
        const std::size_t b = plan_.parameters[i].bucket;
        const std::uint32_t count = ++counts_[i];
        if (count == expected_[i]) {
            --states_[b].incomplete;
        } else if (expected_[i] != 0 && count == expected_[i] + 1) {
            if (states_[b].present == phase::waiting) {
                ++states_[b].incomplete;  // until finish()
            } else {
                record_.written_late = i + 1;
            }
        }
        if (!failure_) failure_ = detail::exception_of([&] { progress(); });
    }

    /// Moves everything on that can be moved without waiting.
    void progress() {
        for (std::size_t b = first_open_; b < next_launch_; ++b) {
            bucket_state& it = states_[b];
            if (it.present == phase::exchanging && ranks_.finished(it.call)) {
                sum(b);
                it.present = options_.share_only ? phase::done : phase::summed;
            }
            if (it.present == phase::summed && next_gather_ == b) {
                it.call = ranks_.start_gather(memory_of(b), byte_cuts_[b]);
                it.present = phase::gathering;
                ++next_gather_;
            }
            if (it.present == phase::gathering && ranks_.finished(it.call)) {
                if (!is_direct(b)) unpack(b);
                it.present = phase::done;
            }
            if (it.present == phase::done && it.slot != no_slot) {
                slots_[std::exchange(it.slot, no_slot)].used = false;
            }
        }
        while (first_open_ < next_launch_ && states_[first_open_].present == phase::done) ++first_open_;
        while (next_launch_ < states_.size() && is_ready(next_launch_) && launch(next_launch_))
            ++next_launch_;
    }
    [[nodiscard]] bool is_ready(std::size_t b) const {
        return finishing_ || (states_[b].incomplete == 0 && b + 1 != states_.size());
    }

    /// What is sent of a bucket.
    [[nodiscard]] std::span<std::byte> memory_of(std::size_t b) {
        const std::size_t bytes = byte_cuts_[b].back();
        return {is_direct(b) ? plan_.buckets[b].segments[0].data : slots_[states_[b].slot].packed.data(),
                bytes};
    }

    bool launch(std::size_t b) {
        const auto free = std::find_if(slots_.begin(), slots_.end(), [](const slot& it) { return !it.used; });
        if (free == slots_.end()) return false;
        bucket_state& it = states_[b];
        free->used = true;
        it.slot = static_cast<std::size_t>(free - slots_.begin());
        const detail::gradient_bucket& bucket = plan_.buckets[b];
        const std::vector<std::size_t>& cuts = byte_cuts_[b];
        if (!is_direct(b)) {
            record_.bucket = static_cast<std::uint32_t>(b);
            for (std::size_t r = 0; r + 1 < cuts.size(); ++r) {
                record_.write(free->packed.data() + cuts[r + 1] - sizeof record_);
                if (!blocks_.empty()) {
                    blocks_[b].pack(exec_, bucket, r, lost_factor_, free->packed.data() + cuts[r]);
                    continue;
                }
                bucket.for_memory(bucket.cuts[r], bucket.cuts[r + 1],
                                  [&](const std::byte* gradients, std::size_t first, std::size_t count) {
                                      std::byte* const to = free->packed.data() + cuts[r];
                                      bucket.codec.pack(exec_, gradients, to + first * bucket.codec.wire_size,
                                                        count);
                                  });
            }
        }
        const std::size_t part = cuts[self() + 1] - cuts[self()];
        const std::span<std::byte> received(free->received.data(), part * (cuts.size() - 1));
        it.call = ranks_.start_exchange(memory_of(b), received, cuts);
        it.present = phase::exchanging;
        if (!finishing_) ++statistics_.buckets_early;
        statistics_.bytes_sent += cuts.back() - part + (options_.share_only ? 0 : part * (cuts.size() - 2));
        return true;
    }

    void sum(std::size_t b) {
        const detail::gradient_bucket& bucket = plan_.buckets[b];
        const std::vector<std::size_t>& cuts = byte_cuts_[b];
        const std::size_t part = cuts[self() + 1] - cuts[self()];
        const std::byte* const received = slots_[states_[b].slot].received.data();
        const bool direct = is_direct(b);
        if (!direct) check_records(b, received, part);
        const std::size_t begin = bucket.cuts[self()], end = bucket.cuts[self() + 1];
        if (!blocks_.empty()) {
            for (std::size_t r = 0; r + 1 < cuts.size(); ++r) note_finite(received + r * part, end - begin);
            blocks_[b].sum(exec_, bucket, received, part, cuts.size() - 1, options_.mean, lost_factor_,
                           options_.share_only ? nullptr : memory_of(b).data() + cuts[self()]);
        } else if (options_.share_only) {
            bucket.for_memory(begin, end, [&](std::byte* gradients, std::size_t first, std::size_t count) {
                bucket.codec.sum_to_gradients(sum_, exec_, received + first * bucket.codec.wire_size, part,
                                              gradients, count);
            });
        } else {
            bucket.codec.sum(sum_, exec_, received, part, memory_of(b).data() + cuts[self()], end - begin);
        }
    }

    void unpack(std::size_t b) {
        const detail::gradient_bucket& bucket = plan_.buckets[b];
        const std::vector<std::size_t>& cuts = byte_cuts_[b];
        const std::byte* const packed = slots_[states_[b].slot].packed.data();
        for (std::size_t r = 0; r + 1 < cuts.size(); ++r) {
            if (!blocks_.empty()) {
                note_finite(packed + cuts[r], bucket.cuts[r + 1] - bucket.cuts[r]);
                blocks_[b].unpack(exec_, bucket, r, packed + cuts[r]);
                continue;
            }
            bucket.for_memory(bucket.cuts[r], bucket.cuts[r + 1],
                              [&](std::byte* gradients, std::size_t first, std::size_t count) {
                                  bucket.codec.unpack(exec_,
                                                      packed + cuts[r] + first * bucket.codec.wire_size,
                                                      gradients, count);
                              });
        }
    }

    void note_finite(const std::byte* part, std::size_t elements) {
        finite_ = finite_ && detail::block_bucket::is_finite(part, elements);
    }
    /// What rounding has lost comes with the next gradients; that of a step which no rank applies does not.
    void keep_what_is_lost() {
        if (options_.share_only) {
            std::uint64_t broken = finite_ ? 0 : 1;  // no rank has seen all parts
            (ranks_.max)(std::span<std::uint64_t>(&broken, 1));
            finite_ = broken == 0;
        }
        if (std::exchange(finite_, true)) {
            lost_scale_ = record_.scale;
            for (detail::block_bucket& it : blocks_) it.commit();
        }
    }

    /// Looks at what the ranks say beside their gradients; finish() tells it when all messages have come, so
    /// that all ranks have.
    void check_records(std::size_t b, const std::byte* received, std::size_t part) {
        detail::agreement_record mine = record_;
        mine.bucket = static_cast<std::uint32_t>(b);
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            const auto theirs = detail::agreement_record::read(
                received + (static_cast<std::size_t>(rank) + 1) * part - sizeof record_);
            if (difference_.empty()) difference_ = mine.difference(theirs, rank);
            if (late_ == 0) late_ = theirs.written_late;
        }
    }
    void report(std::string_view function) {
        const std::string difference = std::exchange(difference_, {});
        const std::uint64_t late = std::exchange(late_, 0U);
        if (!difference.empty()) {
            detail::throw_error(rank_error(std::string(function) + ": " + difference));
        }
        if (late != 0) {
            const std::size_t i = static_cast<std::size_t>(late) - 1;
            detail::throw_error(state_error(
                std::string(function) + ": the gradient of parameters[" + std::to_string(i) + "] ('" +
                plan_.parameters[i].name +
                "') was written once more than in the step before, when a rank had sent it already; abandon "
                "the iteration"));
        }
    }

    cpu exec_;
    Ranks& ranks_;
    reduction_options options_;
    detail::rank_sum sum_;
    detail::bucket_plan plan_;
    std::vector<detail::block_bucket> blocks_;         // of every bucket; empty for other wires
    float lost_scale_ = 1.0F;                          // of what they have lost,
    float lost_factor_ = 1.0F;                         // and from it to the present one
    bool finite_ = true;                               // so far in this step
    std::vector<std::vector<std::size_t>> byte_cuts_;  // of every bucket
    std::vector<bucket_state> states_;
    std::vector<slot> slots_;
    std::vector<std::uint32_t> counts_;    // writes of every parameter in this pass,
    std::vector<std::uint32_t> expected_;  // and in that of the step before
    std::size_t first_open_ = 0;           // buckets before it are done
    std::size_t next_launch_ = 0;
    std::size_t next_gather_ = 0;
    detail::agreement_record record_;
    std::string difference_;
    std::uint64_t late_ = 0;
    std::exception_ptr failure_;
    reduction_statistics statistics_;
    bool begun_ = false;
    bool finishing_ = false;
};

}  // namespace mp::inline MP_ISA_NAMESPACE
