// SPDX-License-Identifier: MIT
/// \file
/// Agreement of loss scalers among the ranks of an MPI program.
///
/// Link with an MPI library, in CMake MPI::MPI_CXX. Where mpi.h still brings the old C++ bindings, define
/// OMPI_SKIP_MPICXX or MPICH_SKIP_MPICXX; they are not used.
#pragma once

#include <mp/error.hpp>
#include <mp/scaling/reducer.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
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
        require_running("mp::mpi_reducer");
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
        wait_for(request, "mp::mpi_reducer");
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
    static void require_running(std::string_view function) {
        int flag = 0;
        check_mpi(MPI_Initialized(&flag), "MPI_Initialized");
        if (flag == 0)
            detail::throw_error(
                state_error(std::string(function) + ": call MPI_Init or MPI_Init_thread before"));
        check_mpi(MPI_Finalized(&flag), "MPI_Finalized");
        if (flag != 0)
            detail::throw_error(state_error(std::string(function) + ": MPI_Finalize has been called"));
    }

    void reduce(std::string_view function, std::span<std::uint64_t> values, MPI_Op operation) {
        if (values.size() > INT_MAX) {
            detail::throw_argument(function, "values.size()", values.size(), "must be less than 2^31");
        }
        require_running(function);
        int level = MPI_THREAD_SINGLE;
        int in_main_thread = 0;
        check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
        check_mpi(MPI_Is_thread_main(&in_main_thread), "MPI_Is_thread_main");
        if (in_main_thread == 0 && level < MPI_THREAD_SERIALIZED) {
            detail::throw_error(
                state_error(std::string(function) +
                            ": called by another thread than the one that initialised MPI, which needs "
                            "MPI_Init_thread with MPI_THREAD_SERIALIZED"));
        }
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
        wait_for(request_, function);
        std::copy(memory_.begin(), memory_.end(), values.begin());
    }

    void wait_for(MPI_Request& request, std::string_view function) const {
        detail::wait_for_ranks(function, timeout_, "save what can be saved and end by MPI_Abort", [&] {
            int done = 0;
            check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
            return done != 0;
        });
    }

    void release() noexcept { static_cast<void>(MPI_Comm_free(&communicator_)); }

    MPI_Comm communicator_ = MPI_COMM_NULL;
    std::chrono::nanoseconds timeout_;
    std::vector<std::uint64_t> memory_;
    MPI_Request request_ = MPI_REQUEST_NULL;  ///< of a call that has not ended
};

static_assert(rank_reducer<mpi_reducer>);

}  // namespace mp
