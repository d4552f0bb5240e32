// SPDX-License-Identifier: MIT
/// \file
/// The ranks of an NCCL communicator: as a communicator of device memory for <mp/parallel.hpp>, and for loss
/// scalers that agree, on the host and on devices. Needs the headers of NCCL 2 and of CUDA's runtime, but no nvcc; link with
/// both.
#pragma once

#include <mp/device/cuda/device_buffer.hpp>
#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mp {

/// A call of NCCL failed. The message names the call, NCCL's text and its code:
/// "ncclAllReduce: invalid argument (4)".
class nccl_error : public rank_error {
public:
    nccl_error(std::string_view call, ncclResult_t code)
        : rank_error(std::string(call) + ": " + ncclGetErrorString(code) + " (" +
                     detail::error_text(static_cast<int>(code)) + ")"),
          call_(call),
          code_(code) {}

    /// The call that failed, such as "ncclAllReduce".
    [[nodiscard]] const std::string& call() const noexcept { return call_; }

    /// NCCL's result.
    [[nodiscard]] ncclResult_t code() const noexcept { return code_; }

private:
    std::string call_;
    ncclResult_t code_;
};

/// Throws nccl_error unless `status` is ncclSuccess.
inline void check_nccl(ncclResult_t status, std::string_view call) {
    if (status != ncclSuccess) detail::throw_error(nccl_error(call, status));
}

namespace detail {

/// What goes wrong between ranks while a stream runs shows here and nowhere else; `call` is what is blamed.
inline void require_no_nccl_failure(ncclComm_t communicator, std::string_view call) {
    ncclResult_t result = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(communicator, &result), "ncclCommGetAsyncError");
    check_nccl(result, call);
}

/// Whether everything on the stream is done, as long as nothing has failed.
inline bool nccl_stream_has_passed(cuda_stream exec, ncclComm_t communicator, std::string_view call) {
    const cudaError_t status = cudaStreamQuery(exec.stream);
    if (status != cudaErrorNotReady) {
        check_cuda(status, "cudaStreamQuery");
        return true;
    }
    static_cast<void>(cudaGetLastError());  // not an error, but remembered as one
    require_no_nccl_failure(communicator, call);
    return false;
}

}  // namespace detail

/// A rank_reducer (see scaling/reducer.hpp) for scalers on the host. Every max and every sum copies the
/// values to the device, reduces them there, copies them back and waits for the stream: the host stands still
/// until all ranks have come that far. Loss scales on devices do without, see reduce_report.
///
///     mp::nccl_reducer reducer(communicator, stream);
///     scaler.set_reducer(reducer);
///
/// The communicator must be a blocking one (the default) and belongs to the caller, as does the stream; both
/// must outlive the reducer. The device that is current in the calling thread has to be the communicator's.
/// At most one thread at a time uses a reducer, or anything else that uses its communicator.
///
/// A rank that does not come is an error after a time, default_rank_timeout unless another one is given, and
/// what NCCL itself notices, such as a rank that is gone, is one at once. The time counts from when a call
/// has been enqueued, so what is before it on the stream takes part of it. The reduction stays on the stream,
/// and the reducer refuses to work from then on: call ncclCommAbort before it, the stream or the memory is
/// destroyed, or that waits for ever. After an exception the ranks no longer agree: save what can be saved
/// and end.
class nccl_reducer {
public:
    /// Values that are reduced at once; longer spans go in chunks. A scaler's are shorter.
    static constexpr std::size_t default_capacity = 64;

    /// With device memory of its own.
    ///
    /// \param timeout  how long calls wait for all ranks; positive
    /// \throws argument_error  a null communicator, or a timeout that is not positive
    /// \throws cuda_error      there is no memory
    nccl_reducer(ncclComm_t communicator, cuda_stream exec,
                 std::chrono::nanoseconds timeout = default_rank_timeout)
        : own_(checked(communicator, default_capacity, timeout)),
          memory_(own_.span()),
          communicator_(communicator),
          exec_(exec),
          timeout_(timeout) {}

    /// With memory of the caller's, on the communicator's device; it must outlive the reducer, and nothing
    /// else may use it while one of its functions runs.
    ///
    /// \throws argument_error  a null communicator, no memory, or a timeout that is not positive
    nccl_reducer(ncclComm_t communicator, cuda_stream exec, std::span<std::uint64_t> device_memory,
                 std::chrono::nanoseconds timeout = default_rank_timeout)
        : memory_(device_memory), communicator_(communicator), exec_(exec), timeout_(timeout) {
        static_cast<void>(checked(communicator, device_memory.size(), timeout));
    }
    // Scalers keep its address.
    nccl_reducer(const nccl_reducer&) = delete;
    nccl_reducer& operator=(const nccl_reducer&) = delete;
    ~nccl_reducer() = default;

    /// Each value becomes the largest that any rank has in its place. All ranks have to call it.
    ///
    /// \throws nccl_error    the reduction was refused, or failed on the way
    /// \throws cuda_error    a copy failed
    /// \throws rank_timeout  a rank has not made this call in time
    /// \throws state_error   a call has failed on the way before
    void(max)(std::span<std::uint64_t> values) { reduce("mp::nccl_reducer::max", values, ncclMax); }

    /// Each value becomes the sum of what all ranks have in its place, modulo 2^64. All ranks have to call
    /// it.
    ///
    /// \throws as max
    void sum(std::span<std::uint64_t> values) { reduce("mp::nccl_reducer::sum", values, ncclSum); }

    /// How long calls wait for all ranks.
    [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
    /// Sets it for the calls that follow, on this rank; positive, else argument_error.
    void set_timeout(std::chrono::nanoseconds timeout) {
        detail::require_timeout("mp::nccl_reducer::set_timeout", timeout);
        timeout_ = timeout;
    }

private:
    static std::size_t checked(ncclComm_t communicator, std::size_t capacity,
                               std::chrono::nanoseconds timeout) {
        detail::require_timeout("mp::nccl_reducer", timeout);
        if (communicator == nullptr) {
            detail::throw_error(
                argument_error("mp::nccl_reducer: communicator is null; it must come from ncclCommInitRank"));
        }
        if (capacity == 0) {
            detail::throw_argument("mp::nccl_reducer", "device_memory.size()", capacity,
                                   "must be at least 1");
        }
        return capacity;
    }

    void reduce(std::string_view function, std::span<std::uint64_t> values, ncclRedOp_t operation) {
        if (under_way_) {
            detail::throw_joined<state_error>(
                {function,
                 ": a call before this one has failed on the way, so the ranks no longer agree; "
                 "save what can be saved and end by ncclCommAbort"});
        }
        while (!values.empty()) {
            const std::span<std::uint64_t> chunk = values.first((std::min)(values.size(), memory_.size()));
            check_cuda(cudaMemcpyAsync(memory_.data(), chunk.data(), chunk.size_bytes(),
                                       cudaMemcpyHostToDevice, exec_.stream),
                       "cudaMemcpyAsync");
            check_nccl(ncclAllReduce(memory_.data(), memory_.data(), chunk.size(), ncclUint64, operation,
                                     communicator_, exec_.stream),
                       "ncclAllReduce");
            under_way_ = true;
            detail::wait_for_ranks(
                function, timeout_, "save what can be saved and end by ncclCommAbort",
                [&] { return detail::nccl_stream_has_passed(exec_, communicator_, "ncclAllReduce"); });
            under_way_ = false;
            // Not before: copies to pageable memory have the host wait for the stream, without an end.
            check_cuda(cudaMemcpyAsync(chunk.data(), memory_.data(), chunk.size_bytes(),
                                       cudaMemcpyDeviceToHost, exec_.stream),
                       "cudaMemcpyAsync");
            synchronize(exec_);
            values = values.subspan(chunk.size());
        }
        detail::require_no_nccl_failure(communicator_, "ncclAllReduce");
    }

    device_buffer<std::uint64_t> own_;
    std::span<std::uint64_t> memory_;
    ncclComm_t communicator_;
    cuda_stream exec_;
    std::chrono::nanoseconds timeout_;
    bool under_way_ = false;  ///< a reduction that the stream may still be in
};

static_assert(rank_reducer<nccl_reducer>);

namespace detail {

/// Members of a report that ranks add; they come first.
inline constexpr std::size_t added_members = offsetof(device_gradient_report, largest_bits) / 8;
static_assert(sizeof(unsigned long long) == 8 && offsetof(device_gradient_report, checked) == 0);
static_assert(offsetof(device_gradient_report, large) == 8 * (added_members - 1));
static_assert(offsetof(device_gradient_report, excess) == offsetof(device_gradient_report, largest_bits) + 8);

}  // namespace detail

/// Makes the reports of all ranks the report on all gradients, in device memory and in the order of the
/// stream: counts become their sums, the largest magnitude and excess the largest of all. Nothing waits on
/// the host, and it may be captured into a graph. `first` stays: it is the place on this rank, if there is
/// one.
///
/// Call it on every rank once an iteration, after the last unscale_and_check and convert_and_observe and
/// before what looks at `skips`; a second time would add up what is added up already. Ranks without gradients
/// call it too. All ranks then skip alike and move their scales alike, to the bit.
///
///     mp::unscale_and_check(stream, half_gradients, gradients, scale);
///     mp::reduce_report(stream, communicator, scale);
///     // optimizer kernels, which look at scale->skips(policy)
///     mp::update_scale(stream, policy, scale);
///
/// \param exec          the stream; the device current in the calling thread is the communicator's
/// \param communicator  a blocking one, used by no other thread at the same time
/// \param report        one report in device memory
/// \throws argument_error  the communicator or the report is null
/// \throws nccl_error  the reduction was refused. What fails later shows in ncclCommGetAsyncError
inline void reduce_report(cuda_stream exec, ncclComm_t communicator, device_gradient_report* report) {
    if (communicator == nullptr || report == nullptr) {
        detail::throw_joined<argument_error>(
            {"mp::reduce_report: ", (communicator == nullptr ? "communicator" : "report"), " is null"});
    }
    unsigned long long* const added = &report->checked;
    unsigned long long* const largest = &report->largest_bits;
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    ncclResult_t status =
        ncclAllReduce(added, added, detail::added_members, ncclUint64, ncclSum, communicator, exec.stream);
    if (status == ncclSuccess) {
        status = ncclAllReduce(largest, largest, 2, ncclUint64, ncclMax, communicator, exec.stream);
    }
    const ncclResult_t end = ncclGroupEnd();  // in any case, or the thread stays in the group
    check_nccl(status, "ncclAllReduce");
    check_nccl(end, "ncclGroupEnd");
}

/// Overload with the report of a device_loss_scale in device memory.
template <scale_policy Policy, std::size_t Events>
void reduce_report(cuda_stream exec, ncclComm_t communicator, device_loss_scale<Policy, Events>* scale) {
    if (scale == nullptr) detail::throw_error(argument_error("mp::reduce_report: scale is null"));
    reduce_report(exec, communicator, &scale->seen);
}

/// The ranks of an NCCL communicator, for mp::gradient_reduction of gradients in device memory:
///
///     mp::unique_cuda_stream side;                              // of messages and sums
///     mp::nccl_communicator ranks(communicator, side, main);    // main: of the ops
///     mp::gradient_reduction reduction(ranks.exec(), ranks, {}, parameters);
///     {
///         const auto overlap = reduction.backward(scale);
///         model.backward(mp::cuda_stream{main}, ...);
///     }
///     reduction.finish();      // main goes on when side is done; the host does not wait
///
/// Messages are enqueued on `side` as groups of ncclSend and ncclRecv, and of ncclBroadcast: no sum is NCCL's, so
/// that sums have the bits of the CPU. All of it may be captured into a graph. A call has ended (finished())
/// when it is enqueued, since what follows on the stream comes after it; wait(), broadcast(), max and sum stand
/// still until the stream has passed, or the time is over. What NCCL notices later shows in the next call.
///
/// Several reductions on it need backward passes in the same order on all ranks, since what is enqueued has one order;
/// another order is not found, and gives wrong sums or never ends. A time-out does not know which rank is missing.
///
/// The communicator must be a blocking one and belongs to the caller, as do the streams; all outlive this
/// object, and the current device is theirs. At most one thread at a time uses it.
class nccl_communicator {
public:
    /// A call that has been enqueued.
    struct request {};

    /// \param side     stream of messages and of the executor that packs and sums; `main` for no overlap
    /// \param main     stream that writes the gradients and goes on after finish()
    /// \param timeout  how long calls that wait do so; positive
    /// \throws argument_error  a null communicator, or a timeout that is not positive
    /// \throws nccl_error, cuda_error
    nccl_communicator(ncclComm_t communicator, cuda_stream side, cuda_stream main,
                      std::chrono::nanoseconds timeout = default_rank_timeout)
        : reducer_(communicator, side, timeout), communicator_(communicator), side_(side), main_(main) {
        check_nccl(ncclCommUserRank(communicator, &rank_), "ncclCommUserRank");
        check_nccl(ncclCommCount(communicator, &size_), "ncclCommCount");
    }
    // Reductions keep its address.
    nccl_communicator(const nccl_communicator&) = delete;
    nccl_communicator& operator=(const nccl_communicator&) = delete;
    ~nccl_communicator() = default;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return size_; }
    [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return reducer_.timeout(); }
    /// For mp::gradient_reduction.
    [[nodiscard]] cuda_stream exec() const noexcept { return side_; }
    /// Of numbers on the host, see mp::nccl_reducer.
    void(max)(std::span<std::uint64_t> values) { (reducer_.max)(values); }
    void sum(std::span<std::uint64_t> values) { reducer_.sum(values); }

    /// See mp::communicator; the memory is the device's.
    ///
    /// \throws nccl_error  NCCL refuses the call, or has noticed a failure before
    request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                           std::span<const std::size_t> cuts) {
        const auto self = static_cast<std::size_t>(rank_);
        const std::size_t part = cuts[self + 1] - cuts[self];
        grouped("ncclSend and ncclRecv", [&](std::size_t r) {
            const std::size_t bytes = cuts[r + 1] - cuts[r];
            ncclResult_t status = ncclSuccess;
            const int peer = static_cast<int>(r);
            if (bytes != 0) {
                status = ncclSend(from.data() + cuts[r], bytes, ncclUint8, peer, communicator_, side_.stream);
            }
            if (part != 0 && status == ncclSuccess) {
                status = ncclRecv(to.data() + r * part, part, ncclUint8, peer, communicator_, side_.stream);
            }
            return status;
        });
        return {};
    }
    /// See mp::communicator; errors as start_exchange.
    request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts) {
        grouped("ncclBroadcast", [&](std::size_t r) {
            const std::size_t bytes = cuts[r + 1] - cuts[r];
            std::byte* const part = all.data() + cuts[r];
            return bytes == 0 ? ncclSuccess
                              : ncclBroadcast(part, part, bytes, ncclUint8, static_cast<int>(r),
                                              communicator_, side_.stream);
        });
        return {};
    }
    /// \throws nccl_error  NCCL has noticed a failure
    bool finished(request& /*call*/) {
        require_no_failure();
        return true;
    }
    /// \throws nccl_error, cuda_error  something on the stream has failed
    /// \throws rank_timeout            a rank does not come
    void wait(request& /*call*/) { wait_for("mp::nccl_communicator::wait"); }
    /// See mp::communicator; the memory is the device's. Errors as start_exchange and wait.
    void broadcast(std::span<std::byte> bytes, int root) {
        if (bytes.empty()) return;
        check_nccl(ncclBroadcast(bytes.data(), bytes.data(), bytes.size(), ncclUint8, root, communicator_,
                                 side_.stream),
                   "ncclBroadcast");
        wait_for("mp::nccl_communicator::broadcast");
    }

    /// What is enqueued on the side stream from now on waits for what is on the main one.
    void fork() { let_wait(main_, side_, forked_); }
    /// The other way round.
    void join() { let_wait(side_, main_, joined_); }

private:
    template <class Call>
    void grouped(std::string_view name, const Call& call) {
        require_no_failure();
        check_nccl(ncclGroupStart(), "ncclGroupStart");
        ncclResult_t status = ncclSuccess;
        for (std::size_t r = 0; r < static_cast<std::size_t>(size_) && status == ncclSuccess; ++r)
            status = call(r);
        const ncclResult_t end = ncclGroupEnd();  // in any case, or the thread stays in the group
        check_nccl(status, name);
        check_nccl(end, "ncclGroupEnd");
    }
    static void let_wait(cuda_stream first, cuda_stream then, cuda_event& mark) {
        if (first.stream == then.stream) return;
        mark.record(first);
        mark.block(then);
    }
    void wait_for(std::string_view function) {
        detail::wait_for_ranks(function, timeout(), "save what can be saved and end by ncclCommAbort", [&] {
            return detail::nccl_stream_has_passed(side_, communicator_, call_before);
        });
        require_no_failure();
    }
    static constexpr std::string_view call_before = "a call before";
    void require_no_failure() const { detail::require_no_nccl_failure(communicator_, call_before); }

    nccl_reducer reducer_;
    ncclComm_t communicator_;
    cuda_stream side_;
    cuda_stream main_;
    cuda_event forked_;
    cuda_event joined_;
    int rank_ = 0;
    int size_ = 1;
};

static_assert(communicator<nccl_communicator>);

}  // namespace mp
