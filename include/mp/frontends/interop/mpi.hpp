// SPDX-License-Identifier: MIT
/// \file
/// The ranks of an MPI program: as a communicator for <mp/parallel.hpp>, and for loss scalers that agree.
///
/// Link with an MPI library, in CMake MPI::MPI_CXX. Where mpi.h still brings the old C++ bindings, define
/// OMPI_SKIP_MPICXX or MPICH_SKIP_MPICXX; they are not used.
#pragma once

#include <mp/frontends/interop/mpi_calls.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mp {

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
        : calls_("mp::mpi_reducer", communicator, timeout, detail::mpi_calls::largest_message) {}
    // Scalers keep its address.
    mpi_reducer(const mpi_reducer&) = delete;
    mpi_reducer& operator=(const mpi_reducer&) = delete;
    /// Collective, unless a call has failed on the way.
    ~mpi_reducer() = default;

    /// Each value becomes the largest that any rank has in its place. Collective.
    ///
    /// \throws state_error     MPI is finalised, or does not allow this thread to call it, or a call has failed
    ///                         on the way before
    /// \throws rank_error      a rank makes another call, or brings another number of values: on all ranks
    /// \throws mpi_error       the reduction failed
    /// \throws rank_timeout    a rank has not made this call in time; the values are as they were
    void(max)(std::span<std::uint64_t> values) {
        calls_.reduce("mp::mpi_reducer::max", detail::collective::max, values);
    }

    /// Each value becomes the sum of what all ranks have in its place, modulo 2^64. Collective.
    ///
    /// \throws as max
    void sum(std::span<std::uint64_t> values) {
        calls_.reduce("mp::mpi_reducer::sum", detail::collective::sum, values);
    }

    /// How long calls wait for all ranks.
    [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return calls_.timeout(); }
    /// Sets it for the calls that follow, on this rank; positive, else argument_error.
    void set_timeout(std::chrono::nanoseconds timeout) {
        detail::require_timeout("mp::mpi_reducer::set_timeout", timeout);
        calls_.set_timeout(timeout);
    }

    /// The duplicate that the reductions run in.
    [[nodiscard]] MPI_Comm communicator() const noexcept { return calls_.communicator(); }

private:
    detail::mpi_calls calls_;
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
/// Its calls are messages between pairs of ranks in a duplicate of the communicator, each of at most 2^30 bytes, and
/// make progress while MPI is called; MPI_Iallreduce and MPI_Ibcast carry what is longer than eight numbers.
/// Before that the ranks tell each other which call they make, and calls that differ are an error on all of them.
/// Memory is the host's, or a device's where MPI takes it. Creation, destruction, errors and threads are as with
/// mp::mpi_reducer; memory of a call that is given up must outlive the process's use of MPI.
class mpi_communicator {
public:
    /// A call that has been started.
    using request = detail::mpi_calls::request;

    /// Collective over `communicator`. Parameters and errors as those of mp::mpi_reducer.
    ///
    /// \param largest_message  bytes of a message at most, from 8 to 2^31 - 1; the same on all ranks
    explicit mpi_communicator(MPI_Comm communicator, std::chrono::nanoseconds timeout = default_rank_timeout,
                              std::size_t largest_message = detail::mpi_calls::largest_message)
        : calls_("mp::mpi_communicator", communicator, timeout, largest_message) {}
    // Reductions keep its address.
    mpi_communicator(const mpi_communicator&) = delete;
    mpi_communicator& operator=(const mpi_communicator&) = delete;
    ~mpi_communicator() = default;

    [[nodiscard]] int rank() const noexcept { return calls_.rank(); }
    [[nodiscard]] int size() const noexcept { return calls_.size(); }
    [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return calls_.timeout(); }
    /// As mp::mpi_reducer.
    void(max)(std::span<std::uint64_t> values) {
        calls_.reduce("mp::mpi_communicator::max", detail::collective::max, values);
    }
    void sum(std::span<std::uint64_t> values) {
        calls_.reduce("mp::mpi_communicator::sum", detail::collective::sum, values);
    }

    /// See mp::channelled_communicator.
    ///
    /// \throws state_error  MPI has no tags for another channel; there are 8000 at least
    [[nodiscard]] int open_channel() { return calls_.open_channel(); }
    void close_channel(int /*channel*/) noexcept {}

    /// See mp::communicator.
    ///
    /// \throws argument_error  there is no such channel
    /// \throws state_error     MPI is finalised, or does not allow this thread to call it
    /// \throws mpi_error       MPI refuses the call
    [[nodiscard]] request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                         std::span<const std::size_t> cuts, int channel = 0) {
        return calls_.start_exchange("mp::mpi_communicator::start_exchange", from, to, cuts, channel);
    }
    /// See mp::communicator; errors as start_exchange.
    [[nodiscard]] request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts,
                                       int channel = 0) {
        return calls_.start_gather("mp::mpi_communicator::start_gather", all, cuts, channel);
    }
    /// Whether a call has ended.
    ///
    /// \throws rank_error  a rank has made another call in its place: on all ranks
    /// \throws mpi_error   it failed
    bool finished(request& started) { return calls_.finished("mp::mpi_communicator::finished", started); }
    /// Returns when a call has ended.
    ///
    /// \throws rank_error, mpi_error  as finished
    /// \throws rank_timeout           a rank has not made it in time
    void wait(request& started) { calls_.wait("mp::mpi_communicator::wait", started); }
    /// Which ranks have not made a call of this one; empty if it has ended.
    [[nodiscard]] std::string missing(const request& started) const { return calls_.missing(started); }
    /// See mp::communicator.
    ///
    /// \throws argument_error         there is no such rank
    /// \throws rank_error, mpi_error  a rank makes another call, MPI refuses it, or it failed
    /// \throws rank_timeout           a rank does not come
    void broadcast(std::span<std::byte> bytes, int root) {
        calls_.broadcast("mp::mpi_communicator::broadcast", bytes, root);
    }

private:
    detail::mpi_calls calls_;
};

static_assert(channelled_communicator<mpi_communicator>);

}  // namespace mp
