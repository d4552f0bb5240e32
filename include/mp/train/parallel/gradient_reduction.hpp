// SPDX-License-Identifier: MIT
/// \file
/// The mean of the gradients of all ranks, while the backward pass goes on.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/durations.hpp>
#include <mp/base/write_watch.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/train/parallel/agreement.hpp>
#include <mp/train/parallel/bucket_pipeline.hpp>
#include <mp/train/parallel/bucket_plan.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

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
/// A parameter that no rank has used takes no part in the step, as mp::optimizer_base::set_steps_unused_parameters()
/// says: where a gradient is zero on all ranks, they agree on it by one more message. A gradient that no op has
/// written since the last finish(), and that still holds its mean, is zero and not that mean once more.
///
/// With every packed message, the last bucket's at least, travel the step and the loss scale, and ranks that
/// have others are an error on all. Memory: in_flight times twice the largest bucket, in the wire's format;
/// nothing is allocated after the first two steps by the reduction itself. Gradients must not be read or
/// written between their completion and the end of finish().
///
/// On a GPU, with an executor of that kind and a communicator of device memory (mp::nccl_communicator), everything
/// is enqueued and the host waits for nothing; parameters are vectors of mp::parameter in device memory. The
/// sums have the CPU's bits. With a communicator that knows no streams, such as mp::mpi_communicator over an MPI
/// that takes device memory, the host waits for the executor before each message. Steps and scales are not compared
/// there, since that would need the host, and a gradient that is written late is an error on its rank alone.
///
/// Several reductions may be on one communicator, in any order of their passes, also another one on another rank:
/// each has a channel of its own (mp::channelled_communicator). They are made in the same order on all ranks, and
/// their finish() is called in the same order. With mp::nccl_communicator, whose messages have the order of a
/// stream, backward passes have the same order on all ranks as well.
///
/// Threads: everything happens on the thread that calls backward(), the ops and finish(); messages make
/// progress whenever an op has written a gradient. Sums use the threads of `exec`.
template <communicator Ranks, class Executor = cpu>
    requires executor<Executor>
class gradient_reduction {
public:
    /// Collective. Compares names, sizes, types and options of all ranks.
    ///
    /// \param exec        where sums and conversions run
    /// \param ranks       must outlive the reduction; its memory is that of the executor
    /// \param parameters  mp::parameter_store objects, or vectors of mp::parameter; their memory must outlive
    ///                    the reduction. Gradients are float, half or bfloat16
    /// \throws argument_error  no parameter, or memory is null or overlaps, as that of a store which is named
    ///                         twice; bucket_bytes or in_flight is not
    ///                         positive; wire_format::mxfp8 on a GPU
    /// \throws rank_error      ranks have other parameters or options
    template <class... Parameters>
    gradient_reduction(const Executor& exec, Ranks& ranks, const reduction_options& options,
                       Parameters&... parameters)
        : ranks_(ranks),
          options_(checked(exec, options)),
          channel_(ranks),
          pipeline_(exec, ranks, channel_, options, plan_of(ranks, channel_, options, parameters...)) {
        static_assert(sizeof...(Parameters) != 0, "mp::gradient_reduction: name the parameters to reduce");
        counts_.resize(plan().parameters.size());
        expected_.resize(plan().parameters.size());
        written_.resize(plan().parameters.size());
        is_written_by_ops_.resize(plan().parameters.size());
        means_.resize(plan().parameters.size());
        zeros_.reserve(plan().parameters.size());
        flags_.reserve(plan().parameters.size());
    }
    gradient_reduction(const gradient_reduction&) = delete;
    gradient_reduction& operator=(const gradient_reduction&) = delete;
    ~gradient_reduction() = default;

    /// While it lives, gradients are sent as they are complete.
    class [[nodiscard]] scope : detail::write_watch {
    public:
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
        ~scope() = default;

    private:
        friend gradient_reduction;
        scope(gradient_reduction* all, bool last) : all_(all), last_(last) {}
        void written(const void* array, bool /*added*/) noexcept override {
            if (all_ != nullptr) all_->written(array, last_);
        }
        gradient_reduction* all_;
        bool last_;
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
        if (iteration_ != detail::write_watch::iteration()) {
            iteration_ = detail::write_watch::iteration();
            std::fill(written_.begin(), written_.end(), std::uint8_t{0});
        }
        if (!last) return scope(alone() ? nullptr : this, false);
        begun_ = true;
        std::fill(counts_.begin(), counts_.end(), 0U);
        pipeline_.begin(scale);
        return scope(alone() ? nullptr : this, true);
    }

    /// Reduces what is not reduced yet, and waits until all gradients are those of all ranks; on a GPU, what is
    /// enqueued after it waits. Collective.
    ///
    /// \throws state_error   backward(scale) was not called before; or, on all ranks, a gradient was written
    ///                       once more after it had been sent: the gradients are of no use, abandon the
    ///                       iteration
    /// \throws rank_error    the ranks have other loss scales or are at other steps: on all ranks
    /// \throws rank_timeout  a rank does not come
    void finish() {
        constexpr std::string_view function = "mp::gradient_reduction::finish";
        if (!begun_) {
            detail::throw_joined<state_error>(
                {function,
                 ": there is no pass to reduce; call backward(scale) before the last backward pass"});
        }
        if (!alone()) {
            if (failure_) std::rethrow_exception(failure_);
            const auto start = std::chrono::steady_clock::now();
            failure_ = detail::exception_of([&] {
                clear_means_sent_before();
                pipeline_.flush();
                detail::wait_for_ranks(
                    function, ranks_.timeout(), "save what can be saved and end",
                    [&] {
                        pipeline_.progress();
                        return pipeline_.done();
                    },
                    [&] { return pipeline_.missing(); });
                if constexpr (requires { ranks_.join(); }) ranks_.join();
            });
            if (failure_) std::rethrow_exception(failure_);
            pipeline_.statistics.seconds_waited +=
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            pipeline_.statistics.buckets += bucket_count();
        }
        std::copy(counts_.begin(), counts_.end(), expected_.begin());
        begun_ = false;
        ++pipeline_.statistics.steps;
        pipeline_.end(function);
        agree_on_unused();
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
        pipeline_.visit_state(visitor);
    }

    [[nodiscard]] const reduction_statistics& statistics() const noexcept { return pipeline_.statistics; }
    [[nodiscard]] const reduction_options& options() const noexcept { return options_; }
    [[nodiscard]] Ranks& ranks() const noexcept { return ranks_; }
    /// Buckets that the gradients are reduced in.
    [[nodiscard]] std::size_t bucket_count() const noexcept { return plan().buckets.size(); }
    /// For mp::sharded_optimizer.
    [[nodiscard]] const detail::bucket_plan<Executor>& plan() const noexcept { return pipeline_.plan(); }

private:
    static constexpr std::string_view constructor = "mp::gradient_reduction";

    static const reduction_options& checked(const Executor& exec, const reduction_options& options) {
        if constexpr (std::is_same_v<Executor, cpu>) detail::check_threads(constructor, exec);
        if (options.bucket_bytes == 0) {
            detail::throw_argument(constructor, "options.bucket_bytes", 0, "must be positive");
        }
        if (options.in_flight < 1) {
            detail::throw_argument(constructor, "options.in_flight", options.in_flight, "must be at least 1");
        }
        return options;
    }
    template <class... Parameters>
    static detail::bucket_plan<Executor> plan_of(Ranks& ranks, const detail::rank_channel<Ranks>& channel,
                                                 const reduction_options& options,
                                                 Parameters&... parameters) {
        detail::bucket_plan<Executor> plan(constructor, ranks.size(), options.wire, options.bucket_bytes);
        (plan.add(parameters), ...);
        plan.finish();
        const std::array<std::uint64_t, 7> same{static_cast<std::uint64_t>(ranks.size()),
                                                static_cast<std::uint64_t>(options.wire),
                                                options.bucket_bytes,
                                                options.mean ? 1U : 0U,
                                                options.share_only ? 1U : 0U,
                                                options.compare_sent ? 1U : 0U,
                                                static_cast<std::uint64_t>(channel.number())};
        detail::require_same_plan(constructor, plan, same, detail::reducer_reference(ranks));
        return plan;
    }
    [[nodiscard]] bool alone() const { return ranks_.size() == 1; }

    void written(const void* array, bool last) noexcept {
        const std::size_t i = plan().parameter_at(array);
        if (i == no_index) return;
        written_[i] = 1;
        if (!last || !begun_) return;
        const std::uint32_t count = ++counts_[i];
        if (count == expected_[i]) pipeline_.complete(i);
        if (expected_[i] != 0 && count == expected_[i] + 1) pipeline_.reopen(i);
        // Messages that the processor moves piece by piece need several looks, and one takes a microsecond.
        constexpr int looks = 16;
        if (failure_) return;
        failure_ = detail::exception_of([&] {
            pipeline_.progress();
            for (int look = 1; look < looks && pipeline_.is_under_way(); ++look) pipeline_.progress();
        });
    }

    static constexpr bool on_host = std::is_same_v<Executor, cpu>;

    /// Calls f(magnitude bits of an element) on elements of a gradient, of which `every` skips some, until it returns
    /// false.
    template <class Function>
    void for_magnitudes(std::size_t parameter, std::size_t every, Function f) const {
        const detail::reduced_parameter& it = plan().parameters[parameter];
        if (it.elements == 0) return;
        const auto* const data = reinterpret_cast<const std::byte*>(it.begin);
        const std::size_t size = (it.end - it.begin) / it.elements;  // of float, half or bfloat16
        for (std::size_t at = 0; at < it.elements; at += every) {
            std::uint32_t bits = 0;
            if (size == sizeof(std::uint32_t)) {
                std::memcpy(&bits, data + at * size, sizeof bits);
            } else {
                std::uint16_t code = 0;
                std::memcpy(&code, data + at * size, sizeof code);
                bits = std::uint32_t{code} << 16;
            }
            if (!f(bits & 0x7fffffffU)) return;
        }
    }
    [[nodiscard]] bool is_zero(std::size_t parameter) const {
        bool zero = true;
        for_magnitudes(parameter, 1, [&](std::uint32_t bits) { return zero = bits == 0; });
        return zero;
    }
    /// A hash of some elements, zero for zeros.
    [[nodiscard]] std::uint64_t sample_of(std::size_t parameter) const {
        constexpr std::size_t samples = 32;
        std::uint64_t hash = 0;
        for_magnitudes(parameter, plan().parameters[parameter].elements / samples + 1,
                       [&](std::uint32_t bits) {
                           hash = (hash ^ bits) * 0x100000001b3U;  // the prime of FNV-1a
                           return true;
                       });
        return hash;
    }

    /// What is left of the last step in gradients that this step has not written is not sent again.
    void clear_means_sent_before() {
        if constexpr (on_host) {
            for (std::size_t i = 0; i < written_.size(); ++i) {
                const detail::reduced_parameter& it = plan().parameters[i];
                // Gradients that no op writes are the program's own, and may be the same again.
                if (written_[i] != 0 || is_written_by_ops_[i] == 0 || means_[i] == 0 ||
                    sample_of(i) != means_[i])
                    continue;
                std::memset(reinterpret_cast<void*>(it.begin), 0, it.end - it.begin);
            }
        }
    }

    /// Notes a gradient that is zero on all ranks as written on all if it was on one, so that all step the parameter
    /// or none does. Costs a message only where there is such a gradient, which all ranks know.
    void agree_on_unused() {
        if constexpr (on_host) {
            if (!alone()) {
                zeros_.clear();
                flags_.clear();
                for (std::size_t i = 0; i < written_.size(); ++i) {
                    if (!options_.share_only && plan().parameters[i].elements != 0) {
                        if (is_zero(i)) {
                            zeros_.push_back(i);
                            flags_.push_back(written_[i]);
                        } else {
                            detail::write_watch::tell(
                                reinterpret_cast<const void*>(plan().parameters[i].begin), true);
                        }
                    }
                    means_[i] = sample_of(i);
                }
                if (!zeros_.empty()) ranks_.sum(flags_);
                for (std::size_t i = 0; i < zeros_.size(); ++i) {
                    if (flags_[i] == 0) continue;
                    detail::write_watch::tell(
                        reinterpret_cast<const void*>(plan().parameters[zeros_[i]].begin), true);
                }
            }
        }
        for (std::size_t i = 0; i < written_.size(); ++i) {
            if (std::exchange(written_[i], std::uint8_t{0}) != 0) is_written_by_ops_[i] = 1;
            // On a GPU the host does not see the sums, by which ranks would agree: every parameter takes part.
            if (!on_host && !alone()) {
                detail::write_watch::tell(reinterpret_cast<const void*>(plan().parameters[i].begin), true);
            }
        }
    }

    Ranks& ranks_;
    reduction_options options_;
    detail::rank_channel<Ranks> channel_;
    detail::bucket_pipeline<Ranks, Executor> pipeline_;
    std::vector<std::uint32_t> counts_;            // writes of every parameter in this pass,
    std::vector<std::uint32_t> expected_;          // and in that of the step before
    std::vector<std::uint8_t> written_;            // whether any pass of this step has written it
    std::uint64_t iteration_ = 0;                  // that these passes belong to
    std::vector<std::uint8_t> is_written_by_ops_;  // in any step
    std::vector<std::uint64_t> means_;             // samples of what the last step has left
    std::vector<std::size_t> zeros_;
    std::vector<std::uint64_t> flags_;
    std::exception_ptr failure_;
    bool begun_ = false;
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A visitor of state that calls a function with the newest amax of every history in it.
template <class Function>
struct newest_amax_visitor {
    static constexpr bool loads = false;
    static constexpr bool changes_histories = true;  ///< so those of a GPU are written back

    Function function;

    template <class Thing>
    void operator()(std::string_view /*name*/, Thing&& thing) {
        using bare = std::remove_cvref_t<Thing>;
        if constexpr (std::is_same_v<bare, amax_history>) {
            function(thing.newest());
        } else if constexpr (requires { thing.visit_state(*this); }) {
            thing.visit_state(*this);
        }
    }
    template <class Value>
    void expect(std::string_view /*name*/, const Value& /*value*/) {}
};

template <class Function, class... Models>
void for_each_newest_amax(const Function& function, Models&... models) {
    newest_amax_visitor<Function> visitor{function};
    (models.visit_state(visitor), ...);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Makes the newest amax of every mp::amax_history in `models` the largest of all ranks, so that the ranks'
/// scales of 8-bit operands stay the same, as Transformer Engine's amax reduction. To be called after the last
/// backward pass of a step; one message for all of them, and none where there is no history. Collective. Waits for
/// the GPU on which layers are.
///
/// \param models  layers, models of them: objects with visit_state(visitor), see mp::save_checkpoint
template <communicator Ranks, class... Models>
void reduce_amax(Ranks& ranks, Models&... models) {
    if (ranks.size() == 1) return;
    // Magnitudes are in the order of their codes.
    std::vector<std::uint64_t> codes;
    detail::for_each_newest_amax([&](float amax) { codes.push_back(detail::bit_cast<std::uint32_t>(amax)); },
                                 models...);
    if (codes.empty()) return;
    (ranks.max)(codes);
    std::size_t next = 0;
    detail::for_each_newest_amax(
        [&](float& amax) { amax = detail::bit_cast<float>(static_cast<std::uint32_t>(codes[next++])); },
        models...);
}

}}  // namespace mp
