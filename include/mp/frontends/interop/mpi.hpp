// SPDX-License-Identifier: MIT
/// \file
/// The ranks of an MPI program: as a communicator for <mp/parallel.hpp>, and for loss scalers that agree.
///
/// Link with an MPI library, in CMake MPI::MPI_CXX. Where mpi.h still brings the old C++ bindings, define
/// OMPI_SKIP_MPICXX or MPICH_SKIP_MPICXX; they are not used.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp {

/// A call of MPI failed. The message names the call, MPI's text and its code:
/// "MPI_Iallreduce: MPI_ERR_COMM: invalid communicator (5)".
class mpi_error : public error {
public:
    mpi_error(std::string_view call, int code)
        : error(std::string(call) + ": " + text_of(code) + " (" + detail::error_text(code) + ")"),
          call_(call),
          code_(code) {}

    /// The call that failed, such as "MPI_Iallreduce".
    [[nodiscard]] const std::string& call() const noexcept { return call_; }

    /// What it returned; MPI_Error_class turns it into one of the standard's classes.
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    static std::string text_of(int code) {
        char text[MPI_MAX_ERROR_STRING] = {};
        int length = 0;
        if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "unknown error";
        return {text, static_cast<std::size_t>(length)};
    }

    std::string call_;
    int code_;
};

/// Throws mpi_error unless `status` is MPI_SUCCESS.
inline void check_mpi(int status, std::string_view call) {
    if (status != MPI_SUCCESS) detail::throw_error(mpi_error(call, status));
}

namespace detail {

/// Throws state_error unless MPI is initialised and not finalised.
inline void require_mpi(std::string_view function) {
    int flag = 0;
    check_mpi(MPI_Initialized(&flag), "MPI_Initialized");
    if (flag == 0)
        throw_error(state_error(std::string(function) + ": call MPI_Init or MPI_Init_thread before"));
    check_mpi(MPI_Finalized(&flag), "MPI_Finalized");
    if (flag != 0) throw_error(state_error(std::string(function) + ": MPI_Finalize has been called"));
}

/// As require_mpi(), and unless this thread may call MPI.
inline void require_mpi_thread(std::string_view function) {
    require_mpi(function);
    int level = MPI_THREAD_SINGLE;
    int in_main_thread = 0;
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
    check_mpi(MPI_Is_thread_main(&in_main_thread), "MPI_Is_thread_main");
    if (in_main_thread == 0 && level < MPI_THREAD_SERIALIZED) {
        throw_error(state_error(std::string(function) +
                                ": called by another thread than the one that initialised MPI, which needs "
                                "MPI_Init_thread with MPI_THREAD_SERIALIZED"));
    }
}

/// Waits until a request has ended. Throws rank_timeout when that takes too long.
inline void wait_for_mpi(std::string_view function, std::chrono::nanoseconds timeout, MPI_Request& request) {
    wait_for_ranks(function, timeout, "save what can be saved and end by MPI_Abort", [&] {
        int done = 0;
        check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        return done != 0;
    });
}

}  // namespace detail

/// A rank_reducer (see scaling/reducer.hpp) over a communicator:
///
///     mp::mpi_reducer reducer(MPI_COMM_WORLD);
///     mp::dynamic_loss_scaler scaler;
///     scaler.set_reducer(reducer);
///
/// The communicator is duplicated, so that no other traffic gets in between, and errors in the duplicate are
/// returned: they become exceptions here, and the error handler of the original stays what it is. Creating
/// and destroying a reducer is therefore collective, and it must be destroyed before MPI_Finalize (later, the
/// duplicate is left to MPI).
///
/// Every max and every sum waits until all ranks have called it, with as many values; a rank that does not
/// come is an error after a time, default_rank_timeout unless another one is given. MPI can take back neither
/// the call nor its memory, so the reducer refuses to work from then on, and what belongs to the call is left
/// to the end of the process. After any mpi_error or rank_timeout the ranks no longer agree, and MPI promises
/// nothing about later calls, MPI_Finalize included: save what can be saved and end by MPI_Abort.
///
/// Threads: at most one thread at a time uses a reducer. MPI has to provide MPI_THREAD_SERIALIZED if that is
/// ever another thread than the one that initialised MPI, which is checked, and MPI_THREAD_MULTIPLE if yet
/// other threads call MPI at the same time, which is not. Otherwise MPI_THREAD_FUNNELED is enough, also with
/// mp::cpu{.threads = n}, whose workers never call MPI; and MPI_THREAD_SINGLE for programs of one thread.
class mpi_reducer {
public:
    /// Collective over `communicator`.
    ///
    /// \param communicator  an intracommunicator; need not outlive the reducer
    /// \param timeout       how long calls wait for all ranks, this one included; positive
    /// \throws state_error     MPI is not initialised, or already finalised
    /// \throws argument_error  MPI_COMM_NULL, or an intercommunicator; the timeout is not positive
    /// \throws mpi_error       MPI could not duplicate it, and its error handler is MPI_ERRORS_RETURN
    /// \throws rank_timeout    a rank does not create its reducer
    explicit mpi_reducer(MPI_Comm communicator, std::chrono::nanoseconds timeout = default_rank_timeout)
        : timeout_(timeout) {
        detail::require_timeout("mp::mpi_reducer", timeout);
        detail::require_mpi("mp::mpi_reducer");
        if (communicator == MPI_COMM_NULL) {
            detail::throw_error(
                argument_error("mp::mpi_reducer: communicator is MPI_COMM_NULL; it must have ranks"));
        }
        int between_groups = 0;
        check_mpi(MPI_Comm_test_inter(communicator, &between_groups), "MPI_Comm_test_inter");
        if (between_groups != 0) {
            detail::throw_error(argument_error(
                "mp::mpi_reducer: communicator joins two groups; it must be an intracommunicator, as "
                "MPI_Intercomm_merge makes"));
        }
        // Owned by nobody while MPI may write to it: a wait that is given up leaves it to the process.
        auto* const duplicate = new MPI_Comm(MPI_COMM_NULL);
        MPI_Request request = MPI_REQUEST_NULL;
        check_mpi(MPI_Comm_idup(communicator, duplicate, &request), "MPI_Comm_idup");
        detail::wait_for_mpi("mp::mpi_reducer", timeout_, request);
        communicator_ = *duplicate;
        delete duplicate;
        const int status = MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
        if (status != MPI_SUCCESS) {
            release();
            detail::throw_error(mpi_error("MPI_Comm_set_errhandler", status));
        }
    }
    // Scalers keep its address.
    mpi_reducer(const mpi_reducer&) = delete;
    mpi_reducer& operator=(const mpi_reducer&) = delete;
    /// Collective, unless a call has failed on the way.
    ~mpi_reducer() {
        if (request_ != MPI_REQUEST_NULL) {
            // MPI may still read and write it, so it is never freed.
            static_cast<void>(new std::vector<std::uint64_t>(std::move(memory_)));
            return;
        }
        int finalized = 0;
        if (MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0) release();
    }

    /// Each value becomes the largest that any rank has in its place. Collective.
    ///
    /// \throws argument_error  2^31 values or more
    /// \throws state_error     MPI is finalised, or does not allow this thread to call it, or a call has
    /// failed
    ///                         on the way before
    /// \throws mpi_error       the reduction failed
    /// \throws rank_timeout    a rank has not made this call in time; the values are as they were
    void(max)(std::span<std::uint64_t> values) { reduce("mp::mpi_reducer::max", values, MPI_MAX); }

    /// Each value becomes the sum of what all ranks have in its place, modulo 2^64. Collective.
    ///
    /// \throws as max
    void sum(std::span<std::uint64_t> values) { reduce("mp::mpi_reducer::sum", values, MPI_SUM); }

    /// How long calls wait for all ranks.
    [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
    /// Sets it for the calls that follow, on this rank; positive, else argument_error.
    void set_timeout(std::chrono::nanoseconds timeout) {
        detail::require_timeout("mp::mpi_reducer::set_timeout", timeout);
        timeout_ = timeout;
    }

    /// The duplicate that the reductions run in.
    [[nodiscard]] MPI_Comm communicator() const noexcept { return communicator_; }

private:
    void reduce(std::string_view function, std::span<std::uint64_t> values, MPI_Op operation) {
        if (values.size() > INT_MAX) {
            detail::throw_argument(function, "values.size()", values.size(), "must be less than 2^31");
        }
        detail::require_mpi_thread(function);
        if (request_ != MPI_REQUEST_NULL) {
            detail::throw_error(
                state_error(std::string(function) +
                            ": a call before this one has failed on the way, so the ranks no longer agree; "
                            "save what can be saved and end by MPI_Abort"));
        }
        // In memory that outlives a call which is given up; it grows at the first calls only.
        memory_.assign(values.begin(), values.end());
        MPI_Request request = MPI_REQUEST_NULL;
        check_mpi(MPI_Iallreduce(MPI_IN_PLACE, memory_.data(), static_cast<int>(values.size()), MPI_UINT64_T,
                                 operation, communicator_, &request),
                  "MPI_Iallreduce");
        request_ = request;
        detail::wait_for_mpi(function, timeout_, request_);
        std::copy(memory_.begin(), memory_.end(), values.begin());
    }

    void release() noexcept { static_cast<void>(MPI_Comm_free(&communicator_)); }

    MPI_Comm communicator_ = MPI_COMM_NULL;
    std::chrono::nanoseconds timeout_;
    std::vector<std::uint64_t> memory_;
    MPI_Request request_ = MPI_REQUEST_NULL;  ///< of a call that has not ended
};

static_assert(rank_reducer<mpi_reducer>);

/// The ranks of an MPI communicator, for mp::gradient_reduction and everything else of <mp/parallel.hpp>, and
/// for loss scalers as mp::mpi_reducer:
///
///     MPI_Init(&argc, &argv);
///     {
///         mp::mpi_communicator ranks(MPI_COMM_WORLD);
///         mp::broadcast_weights(ranks, store);
///         mp::gradient_reduction reduction(mp::cpu{}, ranks, {}, store);
///         ...
///     }
///     MPI_Finalize();
///
/// It has three duplicates of the communicator: for exchanges, for gathers, and for calls that wait, which may
/// overtake each other. Messages go through MPI_Ialltoallv and MPI_Iallgatherv, and make progress while MPI is
/// called. Memory is the host's. Creation, destruction, errors and threads are as with mp::mpi_reducer;
/// memory of a call that is given up must outlive the process's use of MPI.
class mpi_communicator {
public:
    /// A call that has been started.
    struct request {
        std::size_t call = 0;      ///< 1 + its place among the calls; 0 for none
        std::uint64_t number = 0;  ///< among all calls
    };

    /// Collective over `communicator`. Parameters and errors as those of mp::mpi_reducer.
    explicit mpi_communicator(MPI_Comm communicator, std::chrono::nanoseconds timeout = default_rank_timeout)
        : reducer_(communicator, timeout),
          exchanges_(communicator, timeout),
          gathers_(communicator, timeout) {
        check_mpi(MPI_Comm_rank(communicator, &rank_), "MPI_Comm_rank");
        check_mpi(MPI_Comm_size(communicator, &size_), "MPI_Comm_size");
    }
    // Reductions keep its address.
    mpi_communicator(const mpi_communicator&) = delete;
    mpi_communicator& operator=(const mpi_communicator&) = delete;
    ~mpi_communicator() {
        for (std::unique_ptr<call>& it : calls_) {
            // MPI may still read its counts.
            if (it->request != MPI_REQUEST_NULL) static_cast<void>(it.release());
        }
    }

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return size_; }
    [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return reducer_.timeout(); }
    void(max)(std::span<std::uint64_t> values) { (reducer_.max)(values); }
    void sum(std::span<std::uint64_t> values) { reducer_.sum(values); }

    /// See mp::communicator.
    ///
    /// \throws argument_error  2^31 bytes or more
    /// \throws state_error     MPI is finalised, or does not allow this thread to call it
    /// \throws mpi_error       MPI refuses the call
    [[nodiscard]] request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                         std::span<const std::size_t> cuts) {
        constexpr std::string_view function = "mp::mpi_communicator::start_exchange";
        const std::size_t at = new_call(function, (std::max)(from.size(), to.size()), cuts);
        call& it = *calls_[at];
        const int part = it.counts[static_cast<std::size_t>(rank_)];
        for (std::size_t r = 0; r < it.counts.size(); ++r) {
            it.received[r] = part;
            it.received_at[r] = static_cast<int>(r) * part;
        }
        check_mpi(MPI_Ialltoallv(from.data(), it.counts.data(), it.begins.data(), MPI_BYTE, to.data(),
                                 it.received.data(), it.received_at.data(), MPI_BYTE,
                                 exchanges_.communicator(), &it.request),
                  "MPI_Ialltoallv");
        return {at + 1, it.number};
    }
    /// See mp::communicator; errors as start_exchange.
    [[nodiscard]] request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts) {
        const std::size_t at = new_call("mp::mpi_communicator::start_gather", all.size(), cuts);
        call& it = *calls_[at];
        check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), it.counts.data(),
                                  it.begins.data(), MPI_BYTE, gathers_.communicator(), &it.request),
                  "MPI_Iallgatherv");
        return {at + 1, it.number};
    }
    /// Whether a call has ended.
    ///
    /// \throws mpi_error  it failed
    bool finished(request& started) {
        if (started.call == 0) return true;
        call& it = require_open("mp::mpi_communicator::finished", started);
        int done = 0;
        check_mpi(MPI_Test(&it.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done != 0) started = {};
        return done != 0;
    }
    /// Returns when a call has ended.
    ///
    /// \throws mpi_error     it failed
    /// \throws rank_timeout  a rank has not made it in time
    void wait(request& started) {
        if (started.call == 0) return;
        constexpr std::string_view function = "mp::mpi_communicator::wait";
        detail::wait_for_mpi(function, timeout(), require_open(function, started).request);
        started = {};
    }
    /// See mp::communicator. In pieces of at most 2^30 bytes.
    ///
    /// \throws mpi_error     MPI refuses the call, or it failed
    /// \throws rank_timeout  a rank does not come
    void broadcast(std::span<std::byte> bytes, int root) {
        constexpr std::string_view function = "mp::mpi_communicator::broadcast";
        detail::require_mpi_thread(function);
        constexpr std::size_t most = std::size_t{1} << 30;
        for (std::size_t at = 0; at < bytes.size(); at += most) {
            const std::size_t count = (std::min)(most, bytes.size() - at);
            // As a call, which outlives this object if it is given up.
            call& it = *calls_[free_call()];
            check_mpi(MPI_Ibcast(bytes.data() + at, static_cast<int>(count), MPI_BYTE, root,
                                 reducer_.communicator(), &it.request),
                      "MPI_Ibcast");
            detail::wait_for_mpi(function, timeout(), it.request);
        }
    }

private:
    /// A call under way and what MPI reads until it ends.
    struct call {
        MPI_Request request = MPI_REQUEST_NULL;
        std::uint64_t number = 0;
        std::vector<int> counts, begins, received, received_at;
    };

    /// Returns the call of a request that is under way.
    ///
    /// \throws state_error  it has ended, or is another communicator's
    [[nodiscard]] call& require_open(std::string_view function, const request& started) const {
        const bool known = started.call <= calls_.size() &&
                           calls_[started.call - 1]->number == started.number &&
                           calls_[started.call - 1]->request != MPI_REQUEST_NULL;
        if (!known) {
            detail::throw_error(
                state_error(std::string(function) +
                            ": the request is of a call that has ended, or of another communicator"));
        }
        return *calls_[started.call - 1];
    }
    /// The place of a call that is not under way.
    std::size_t free_call() {
        const auto is_free = [](const std::unique_ptr<call>& it) { return it->request == MPI_REQUEST_NULL; };
        const auto found = std::find_if(calls_.begin(), calls_.end(), is_free);
        if (found != calls_.end()) return static_cast<std::size_t>(found - calls_.begin());
        calls_.push_back(std::make_unique<call>());
        const auto ranks = static_cast<std::size_t>(size_);
        for (auto* it : {&calls_.back()->counts, &calls_.back()->begins, &calls_.back()->received,
                         &calls_.back()->received_at}) {
            it->resize(ranks);
        }
        return calls_.size() - 1;
    }
    std::size_t new_call(std::string_view function, std::size_t bytes, std::span<const std::size_t> cuts) {
        detail::require_mpi_thread(function);
        if (bytes > INT_MAX) detail::throw_argument(function, "bytes", bytes, "must be less than 2^31");
        const std::size_t at = free_call();
        calls_[at]->number = ++started_;
        for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r) {
            calls_[at]->begins[r] = static_cast<int>(cuts[r]);
            calls_[at]->counts[r] = static_cast<int>(cuts[r + 1] - cuts[r]);
        }
        return at;
    }

    mpi_reducer reducer_;
    mpi_reducer exchanges_;  // whose communicators these calls use
    mpi_reducer gathers_;
    int rank_ = 0;
    int size_ = 1;
    std::vector<std::unique_ptr<call>> calls_;
    std::uint64_t started_ = 0;
};

static_assert(communicator<mpi_communicator>);

}  // namespace mp
