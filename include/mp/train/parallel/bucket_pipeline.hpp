// SPDX-License-Identifier: MIT
/// \file
/// Buckets of gradients on their way: packed, exchanged, summed, gathered, unpacked.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/train/parallel/agreement.hpp>
#include <mp/train/parallel/block_wire.hpp>
#include <mp/train/parallel/bucket_plan.hpp>
#include <mp/train/parallel/communicator.hpp>
#include <mp/train/parallel/wire_codec.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp {

/// How gradients are reduced. The same on all ranks.
struct reduction_options {
    wire_format wire = wire_format::as_stored;
    std::size_t bucket_bytes = std::size_t{8} << 20;  ///< of gradients; a larger parameter has its own bucket
    bool mean = true;                                 ///< else the sum
    int in_flight = 4;  ///< buckets that are under way at once, each with memory
    /// Each rank receives only the sums of its shard, for mp::sharded_optimizer.
    bool share_only = false;
    /// Whether to look for gradients that are changed after they were sent, which no op tells, on CPUs; reads
    /// all gradients twice. By default in builds without NDEBUG.
    bool compare_sent = MP_CHECK_KEPT_CASTS != 0;
};

/// What reductions have done so far.
struct reduction_statistics {
    std::uint64_t steps = 0;
    std::uint64_t bytes_sent = 0;     ///< to other ranks, by this one
    std::uint64_t buckets = 0;        ///< reduced
    std::uint64_t buckets_early = 0;  ///< of them, those that were sent while the backward pass went on
    /// Under wire_format::mxfp8, of the last step: the norm of what this rank has not sent yet, over that of its
    /// gradients.
    double lost = 0;
    double seconds_waited = 0;  ///< in finish(): what was not hidden behind the backward pass
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The reduction of all buckets of a plan, one step after the other. Exchanges, and gathers, are started in the
/// order of the buckets, so that they are in the same order on all ranks.
template <communicator Ranks, class Executor>
class bucket_pipeline {
    using bucket = gradient_bucket<Executor>;
    static constexpr bool on_host = std::is_same_v<Executor, cpu>;

public:
    bucket_pipeline(const Executor& exec, Ranks& ranks, rank_channel<Ranks>& channel,
                    const reduction_options& options, bucket_plan<Executor> plan)
        : exec_(exec), ranks_(ranks), channel_(channel), options_(options), plan_(std::move(plan)) {
        states_.resize(plan_.buckets.size());
        if (ranks.size() == 1) return;
        record_.reduction =
            channel.number() != 0 ? static_cast<std::uint64_t>(channel.number()) : agreed_number();
        if constexpr (on_host) {
            for (std::size_t b = 0; options.wire == wire_format::mxfp8 && b < states_.size(); ++b) {
                blocks_.emplace_back(plan_.buckets[b], self(), !options.share_only);
            }
        }
        allocate();
    }
    bucket_pipeline(const bucket_pipeline&) = delete;
    bucket_pipeline& operator=(const bucket_pipeline&) = delete;
    ~bucket_pipeline() {
        // The library may still write there, so it is never freed; nor after a start that has thrown, which may
        // have started a part.
        memory_.is_kept =
            !ends_calls_with_rank(ranks_) && std::any_of(memory_.entries.begin(), memory_.entries.end(),
                                                         [](const slot& it) { return it.used; });
    }

    [[nodiscard]] const bucket_plan<Executor>& plan() const noexcept { return plan_; }
    [[nodiscard]] bool done() const noexcept { return first_open_ == states_.size(); }
    [[nodiscard]] bool is_under_way() const noexcept { return first_open_ != next_launch_; }

    /// Begins a step.
    void begin(float scale) {
        record_.scale = scale;
        record_.written_late = 0;
        lost_factor_ = float_divide(scale, lost_scale_);
        for (std::size_t b = 0; b < states_.size(); ++b) {
            states_[b] = {};
            states_[b].incomplete = plan_.buckets[b].parameters;
        }
        first_open_ = next_launch_ = next_gather_ = 0;
        flushes_ = false;
    }
    /// A parameter is complete.
    void complete(std::size_t parameter) { --state_of(parameter).incomplete; }
    /// It is written again: its bucket waits for flush(), or all ranks will know that it was sent too early.
    void reopen(std::size_t parameter) {
        bucket_state& it = state_of(parameter);
        if (it.present == phase::waiting) {
            ++it.incomplete;
        } else {
            record_.written_late = parameter + 1;
        }
    }
    /// Whatever is not complete is sent as it is.
    void flush() { flushes_ = true; }

    /// Moves everything on that can be moved without waiting.
    void progress() {
        for (std::size_t b = first_open_; b < next_launch_; ++b) {
            bucket_state& it = states_[b];
            if (it.present == phase::exchanging && ranks_.finished(it.call)) {
                if (options_.share_only) note_change(b);
                sum(b);
                it.present = options_.share_only ? phase::done : phase::summed;
                if (options_.share_only) it.checksum = checksum_of(b);
            }
            if (it.present == phase::summed && next_gather_ == b) {
                before_message();
                it.call = channel_.start_gather(memory_of(b), byte_cuts_[b]);
                it.present = phase::gathering;
                ++next_gather_;
            }
            if (it.present == phase::gathering && ranks_.finished(it.call)) {
                if (!is_direct(b)) {
                    note_change(b);
                    unpack(b);
                }
                it.present = phase::done;
                it.checksum = checksum_of(b);
            }
            if (it.present == phase::done && it.slot != no_slot) {
                memory_.entries[std::exchange(it.slot, no_slot)].used = false;
            }
        }
        while (first_open_ < next_launch_ && states_[first_open_].present == phase::done) ++first_open_;
        while (next_launch_ < states_.size() && is_ready(next_launch_) && launch(next_launch_)) {
            ++next_launch_;
        }
    }

    /// Which ranks have not made a call that this rank waits for, where the communicator tells.
    [[nodiscard]] std::string missing() const {
        if constexpr (requires(const typename Ranks::request& call) { ranks_.missing(call); }) {
            for (std::size_t b = first_open_; b < next_launch_; ++b) {
                const std::string ranks = ranks_.missing(states_[b].call);
                if (!ranks.empty()) {
                    return ranks + ", of bucket " + std::to_string(b) + ", with the gradient of '" +
                           first_of(b).name + "'";
                }
            }
        }
        return {};
    }

    /// Ends a step in which all is done.
    ///
    /// \throws rank_error, state_error  the ranks were not at the same, or sent too early: on all of them, on a GPU
    ///                                  on this one
    void end(std::string_view function) {
        if constexpr (!on_host) late_ = record_.written_late;
        const std::string difference = std::exchange(difference_, {});
        const std::uint64_t late = std::exchange(late_, 0U);
        if constexpr (on_host) {
            const bool counts = difference.empty() && late == 0;
            if (counts && !blocks_.empty()) keep_what_is_lost();
            finite_ = true;
        }
        ++record_.step;
        for (std::size_t b = 0; ranks_.size() > 1 && b < states_.size(); ++b) note_change(b);
        std::size_t changed = std::exchange(changed_, no_index);
        if constexpr (on_host) {
            if (options_.compare_sent && ranks_.size() > 1) {  // only the rank that did it has seen it
                std::uint64_t worst = changed == no_index ? 0 : changed + 1;
                (ranks_.max)(std::span<std::uint64_t>(&worst, 1));
                changed = worst == 0 ? no_index : worst - 1;
            }
        }
        if (!difference.empty()) throw_joined<rank_error>({function, ": ", difference});
        if (late == 0) return require_unchanged(function, changed);
        const std::size_t i = static_cast<std::size_t>(late) - 1;
        throw_joined<state_error>(
            {function, ": the gradient of parameters[", std::to_string(i), "] ('", plan_.parameters[i].name,
             "') was written once more than in the step before, when a rank had sent it already; abandon the "
             "iteration"});
    }

    template <class Visitor>
    void visit_state(Visitor& visitor) {
        if constexpr (on_host) {
            if (blocks_.empty()) return;
            visitor("scale", lost_scale_);
            for (std::size_t b = 0; b < blocks_.size(); ++b) visitor("bucket" + error_text(b), blocks_[b]);
        }
    }

    reduction_statistics statistics;

private:
    /// Returns a number that no other reduction of these ranks has while this one exists: an address on rank 0.
    [[nodiscard]] std::uint64_t agreed_number() {
        std::uint64_t number = ranks_.rank() == 0 ? reinterpret_cast<std::uintptr_t>(this) : 0;
        (ranks_.max)(std::span<std::uint64_t>(&number, 1));
        return number;
    }
    static constexpr std::size_t no_slot = ~std::size_t{0};
    enum class phase : unsigned char { waiting, exchanging, summed, gathering, done };

    struct bucket_state {
        phase present = phase::waiting;
        std::size_t incomplete = 0;  ///< parameters
        std::size_t slot = no_slot;
        std::uint64_t checksum = 0;  ///< of the gradients when they were sent, and then of their means
        typename Ranks::request call{};
    };
    /// Memory of a bucket under way, where the executor works.
    struct slot {
        std::shared_ptr<void> packed;
        std::shared_ptr<void> received;
        bool used = false;
    };
    /// Blocks are of the CPU.
    struct no_blocks {
        [[nodiscard]] static bool empty() noexcept { return true; }
    };

    [[nodiscard]] std::size_t self() const { return static_cast<std::size_t>(ranks_.rank()); }
    [[nodiscard]] bucket_state& state_of(std::size_t parameter) {
        return states_[plan_.parameters[parameter].bucket];
    }
    [[nodiscard]] static std::byte* bytes(const std::shared_ptr<void>& memory) {
        return static_cast<std::byte*>(memory.get());
    }

    /// Whether a bucket travels from where it lies. On the host the last one never does, for what must be agreed
    /// is with it; on a GPU nothing is, for reading it would stop the host. Gradients that are compared stay as they
    /// are until the sums have come.
    [[nodiscard]] bool is_direct(std::size_t b) const {
        const bucket& it = plan_.buckets[b];
        return it.codec.same && it.segments.size() == 1 &&
               (!on_host || (!options_.compare_sent && b + 1 != plan_.buckets.size()));
    }
    static constexpr std::size_t record_size = on_host ? sizeof(agreement_record) : 0;

    void allocate() {
        std::size_t packed = 0, received = 0;
        for (std::size_t b = 0; b < states_.size(); ++b) {
            const bucket& it = plan_.buckets[b];
            const bool direct = is_direct(b);
            std::vector<std::size_t>& cuts = byte_cuts_.emplace_back(1, 0);
            for (std::size_t r = 1; r < it.cuts.size(); ++r) {
                const std::size_t part = it.cuts[r] - it.cuts[r - 1];
                cuts.push_back(cuts.back() + (direct ? 0 : record_size) +
                               (blocks_.empty() ? part * it.codec.wire_size : block_bucket::bytes(part)));
            }
            if (!direct) packed = (std::max)(packed, cuts.back());
            received = (std::max)(received, (cuts[self() + 1] - cuts[self()]) * (cuts.size() - 1));
        }
        const auto memory = [&](std::size_t size) -> std::shared_ptr<void> {
            if constexpr (on_host) {
                const auto owner = std::make_shared<std::vector<std::byte>>(size);
                return {owner, owner->data()};
            } else {
                std::shared_ptr<void> owner = executor_memory<Executor>::allocate(exec_, size);
                if (owner == nullptr) {
                    throw_argument("mp::gradient_reduction", "bytes of device memory", size,
                                   "must be available");
                }
                return owner;
            }
        };
        memory_.entries.resize((std::min)(states_.size(), static_cast<std::size_t>(options_.in_flight)));
        for (slot& it : memory_.entries) {
            it.packed = memory(packed);
            it.received = memory(received);
        }
    }

    [[nodiscard]] bool is_ready(std::size_t b) const {
        return flushes_ || (states_[b].incomplete == 0 && (!on_host || b + 1 != states_.size()));
    }

    /// What is sent of a bucket.
    [[nodiscard]] std::span<std::byte> memory_of(std::size_t b) {
        std::byte* const packed =
            is_direct(b) ? plan_.buckets[b].segments[0].data : bytes(memory_.entries[states_[b].slot].packed);
        return {packed, byte_cuts_[b].back()};
    }

    bool launch(std::size_t b) {
        const auto free = std::find_if(memory_.entries.begin(), memory_.entries.end(),
                                       [](const slot& it) { return !it.used; });
        if (free == memory_.entries.end()) return false;
        if constexpr (requires { ranks_.fork(); }) ranks_.fork();
        bucket_state& it = states_[b];
        free->used = true;
        it.slot = static_cast<std::size_t>(free - memory_.entries.begin());
        const std::vector<std::size_t>& cuts = byte_cuts_[b];
        it.checksum = checksum_of(b);
        if (!is_direct(b)) pack(b, bytes(free->packed));
        const std::size_t part = cuts[self() + 1] - cuts[self()];
        const std::span<std::byte> received(bytes(free->received), part * (cuts.size() - 1));
        before_message();
        it.call = channel_.start_exchange(memory_of(b), received, cuts);
        it.present = phase::exchanging;
        if (!flushes_) ++statistics.buckets_early;
        statistics.bytes_sent += cuts.back() - part + (options_.share_only ? 0 : part * (cuts.size() - 2));
        return true;
    }

    [[nodiscard]] const reduced_parameter& first_of(std::size_t b) const {
        return *std::find_if(plan_.parameters.begin(), plan_.parameters.end(),
                             [b](const auto& it) { return it.bucket == b && it.elements != 0; });
    }
    void require_unchanged(std::string_view function, std::size_t changed) const {
        if (changed == no_index) return;
        throw_joined<state_error>(
            {function, ": the gradient of '", first_of(changed).name,
             "', or one that is sent with it, was changed after it had been sent; change "
             "gradients after finish(), or by an op of the backward pass"});
    }

    void note_change(std::size_t b) {
        if (changed_ == no_index && states_[b].checksum != checksum_of(b)) changed_ = b;
    }
    /// 0 where nothing is compared.
    [[nodiscard]] std::uint64_t checksum_of(std::size_t b) const {
        if (!on_host || !options_.compare_sent) return 0;
        const bucket& it = plan_.buckets[b];
        crc64_stream sum;
        it.for_memory(0, it.elements, [&](const std::byte* gradients, std::size_t, std::size_t count) {
            sum.add({reinterpret_cast<const char*>(gradients), count * it.codec.gradient_size});
        });
        return sum.value();
    }

    /// A library that knows no streams, such as a CUDA-aware MPI, reads memory at once.
    void before_message() {
        if constexpr (!requires { ranks_.fork(); } && requires { synchronize(exec_); }) synchronize(exec_);
    }

    void pack(std::size_t b, std::byte* to) {
        const bucket& it = plan_.buckets[b];
        record_.bucket = static_cast<std::uint32_t>(b);
        for (std::size_t r = 0; r + 1 < it.cuts.size(); ++r) {
            std::byte* const part = to + byte_cuts_[b][r];
            if constexpr (on_host) {
                record_.write(to + byte_cuts_[b][r + 1] - record_size);
                if (!blocks_.empty()) {
                    blocks_[b].pack(exec_, it, r, lost_factor_, part);
                    continue;
                }
            }
            it.for_memory(it.cuts[r], it.cuts[r + 1],
                          [&](const std::byte* gradients, std::size_t first, std::size_t count) {
                              it.codec.pack(exec_, gradients, part + first * it.codec.wire_size, count);
                          });
        }
    }

    void sum(std::size_t b) {
        const bucket& it = plan_.buckets[b];
        const std::vector<std::size_t>& cuts = byte_cuts_[b];
        const std::size_t part = cuts[self() + 1] - cuts[self()];
        const std::size_t ranks = cuts.size() - 1;
        const std::size_t begin = it.cuts[self()], end = it.cuts[self() + 1];
        const std::byte* const received = bytes(memory_.entries[states_[b].slot].received);
        if constexpr (on_host) {
            if (!is_direct(b)) check_records(b, received, part);
            if (!blocks_.empty()) {
                for (std::size_t r = 0; r < ranks; ++r) note_finite(received + r * part, end - begin);
                blocks_[b].sum(exec_, it, received, part, ranks, options_.mean, lost_factor_,
                               options_.share_only ? nullptr : memory_of(b).data() + cuts[self()]);
                return;
            }
        }
        if (options_.share_only) {
            it.for_memory(begin, end, [&](std::byte* gradients, std::size_t first, std::size_t count) {
                it.codec.sum_to_gradients(exec_, received + first * it.codec.wire_size, part, ranks,
                                          options_.mean, gradients, count);
            });
        } else if (begin != end) {
            it.codec.sum(exec_, received, part, ranks, options_.mean, memory_of(b).data() + cuts[self()],
                         end - begin);
        }
    }

    void unpack(std::size_t b) {
        const bucket& it = plan_.buckets[b];
        const std::byte* const packed = bytes(memory_.entries[states_[b].slot].packed);
        for (std::size_t r = 0; r + 1 < it.cuts.size(); ++r) {
            const std::byte* const part = packed + byte_cuts_[b][r];
            if constexpr (on_host) {
                if (!blocks_.empty()) {
                    note_finite(part, it.cuts[r + 1] - it.cuts[r]);
                    blocks_[b].unpack(exec_, it, r, part);
                    continue;
                }
            }
            it.for_memory(it.cuts[r], it.cuts[r + 1],
                          [&](std::byte* gradients, std::size_t first, std::size_t count) {
                              it.codec.unpack(exec_, part + first * it.codec.wire_size, gradients, count);
                          });
        }
    }

    void note_finite(const std::byte* part, std::size_t elements) {
        finite_ = finite_ && block_bucket::is_finite(part, elements);
    }
    /// What rounding has lost comes with the next gradients; that of a step which no rank applies does not.
    void keep_what_is_lost() {
        if (options_.share_only) {
            std::uint64_t broken = finite_ ? 0 : 1;  // no rank has seen all parts
            (ranks_.max)(std::span<std::uint64_t>(&broken, 1));
            finite_ = broken == 0;
        }
        if (!finite_) return;
        lost_scale_ = record_.scale;
        std::array<double, 2> squares{};
        for (block_bucket& it : blocks_) {
            it.commit();
            it.add_squares(squares);
        }
        statistics.lost = squares[0] > 0 ? double_sqrt(double_divide(squares[1], squares[0])) : 0.0;
    }

    /// Looks at what the ranks say beside their gradients; end() tells it when all messages have come, so that
    /// all ranks know.
    void check_records(std::size_t b, const std::byte* received, std::size_t part) {
        agreement_record mine = record_;
        mine.bucket = static_cast<std::uint32_t>(b);
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            const auto theirs =
                agreement_record::read(received + (static_cast<std::size_t>(rank) + 1) * part - record_size);
            if (difference_.empty()) difference_ = mine.difference(theirs, rank);
            if (late_ == 0) late_ = theirs.written_late;
        }
    }

    Executor exec_;
    Ranks& ranks_;
    rank_channel<Ranks>& channel_;
    reduction_options options_;
    bucket_plan<Executor> plan_;
    std::conditional_t<on_host, std::vector<block_bucket>, no_blocks> blocks_;  // of every bucket; maybe none
    std::vector<std::vector<std::size_t>> byte_cuts_;                           // of every bucket
    std::vector<bucket_state> states_;
    /// Buffers of buckets under way. Keeping them takes no allocation, which could fail.
    struct slot_memory {
        slot_memory() : entries() {}
        slot_memory(const slot_memory&) = delete;
        slot_memory& operator=(const slot_memory&) = delete;
        ~slot_memory() {
            if (!is_kept) entries.~vector();
        }
        union {
            std::vector<slot> entries;
        };
        bool is_kept = false;
    };
    slot_memory memory_;
    std::size_t first_open_ = 0;  // buckets before it are done
    std::size_t next_launch_ = 0;
    std::size_t next_gather_ = 0;
    bool flushes_ = false;
    agreement_record record_;
    std::string difference_;
    std::uint64_t late_ = 0;
    std::size_t changed_ = no_index;  // bucket
    float lost_scale_ = 1.0F;         // of what rounding to blocks has lost,
    float lost_factor_ = 1.0F;        // and from it to the present one
    bool finite_ = true;              // so far in this step
};

}}  // namespace mp::detail
