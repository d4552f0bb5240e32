// SPDX-License-Identifier: MIT
/// \file
/// The mean of the gradients of all ranks, while the backward pass goes on.
#pragma once

#include <mp/base/write_watch.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/train/parallel/agreement.hpp>
#include <mp/train/parallel/bucket_pipeline.hpp>
#include <mp/train/parallel/bucket_plan.hpp>
#include <mp/train/parallel/communicator.hpp>
#include <mp/train/parallel/reduction_options.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
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
    /// \throws argument_error  no parameter, or memory is null or overlaps; bucket_bytes or in_flight is not
    ///                         positive; wire_format::mxfp8 on a GPU
    /// \throws rank_error      ranks have other parameters or options
    template <class... Parameters>
    gradient_reduction(const Executor& exec, Ranks& ranks, const reduction_options& options,
                       Parameters&... parameters)
        : ranks_(ranks),
          options_(checked(exec, options)),
          pipeline_(exec, ranks, options, plan_of(ranks, options, parameters...)) {
        static_assert(sizeof...(Parameters) != 0, "mp::gradient_reduction: name the parameters to reduce");
        counts_.resize(plan().parameters.size());
        expected_.resize(plan().parameters.size());
    }
    gradient_reduction(const gradient_reduction&) = delete;
    gradient_reduction& operator=(const gradient_reduction&) = delete;
    ~gradient_reduction() = default;

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
        std::fill(counts_.begin(), counts_.end(), 0U);
        pipeline_.begin(scale);
        return scope(alone() ? nullptr : this);
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
            detail::throw_error(state_error(
                std::string(function) +
                ": there is no pass to reduce; call backward(scale) before the last backward pass"));
        }
        if (!alone()) {
            if (failure_) std::rethrow_exception(failure_);
            const auto start = std::chrono::steady_clock::now();
            failure_ = detail::exception_of([&] {
                pipeline_.flush();
                detail::wait_for_ranks(function, ranks_.timeout(), "save what can be saved and end", [&] {
                    pipeline_.progress();
                    return pipeline_.done();
                });
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
    static detail::bucket_plan<Executor> plan_of(Ranks& ranks, const reduction_options& options,
                                                 Parameters&... parameters) {
        detail::bucket_plan<Executor> plan(constructor, ranks.size(), options.wire, options.bucket_bytes);
        (plan.add(parameters), ...);
        plan.finish();
        const std::array<std::uint64_t, 5> same{
            static_cast<std::uint64_t>(ranks.size()), static_cast<std::uint64_t>(options.wire),
            options.bucket_bytes, options.mean ? 1U : 0U, options.share_only ? 1U : 0U};
        detail::require_same_plan(constructor, plan, same, detail::reducer_reference(ranks));
        return plan;
    }
    [[nodiscard]] bool alone() const { return ranks_.size() == 1; }

    void written(const void* array) noexcept {
        const std::size_t i = plan().parameter_at(array);
        if (i == no_index) return;
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

    Ranks& ranks_;
    reduction_options options_;
    detail::bucket_pipeline<Ranks, Executor> pipeline_;
    std::vector<std::uint32_t> counts_;    // writes of every parameter in this pass,
    std::vector<std::uint32_t> expected_;  // and in that of the step before
    std::exception_ptr failure_;
    bool begun_ = false;
};

}}  // namespace mp
