// SPDX-License-Identifier: MIT
/// \file
/// What data-parallel training asks of the library that carries its messages.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/reducer.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The ranks of a run, and the messages between them: mp::mpi_communicator in <mp/frontends/interop/mpi.hpp>,
/// mp::loopback_communicator (the ranks are threads) in <mp/train/parallel/loopback.hpp>, mp::single_rank, or a
/// class of your own:
///
///     struct my_communicator {                          // and max and sum, see mp::rank_reducer
///         using request = ...;                          // a collective call under way; default-constructible
///         int rank() const;                             // of this process, 0 <= rank() < size()
///         int size() const;
///         std::chrono::nanoseconds timeout() const;     // how long a call may wait for all ranks
///         request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
///                                std::span<const std::size_t> cuts);
///         request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts);
///         bool finished(request& call);
///         void wait(request& call);
///         void broadcast(std::span<std::byte> bytes, int root);
///     };
///
/// `cuts` are size() + 1 ascending offsets from 0 to the number of bytes, the same on all ranks: part r is
/// [cuts[r], cuts[r + 1]), and may be empty.
///  - An exchange brings part r of `from` to rank r: `to` receives this rank's part from every rank, one
///    after the other in the order of the ranks. With a sum of what arrives it is a reduce-scatter.
///  - A gather begins with part r of `all` on rank r, and ends with all of them on all ranks.
///  - finished() says whether a call has ended, and moves all calls of this rank on; wait() returns when it
///    has ended. Until a call has ended its buffers must not be accessed; the send buffer may be read.
///    Every call is ended by one of the two, and its request is then as if made by default.
///  - A broadcast brings the bytes of rank `root` to all. It waits, and so do max and sum.
///
/// Every rank makes the same calls of each kind in the same order; exchanges, gathers and the calls that wait
/// may follow each other in another order on another rank. What cannot go on throws mp::rank_error, or
/// mp::rank_timeout where a rank does not come, and the ranks then no longer agree.
template <class Communicator>
concept communicator =
    rank_reducer<Communicator> && std::default_initializable<typename Communicator::request> &&
    requires(Communicator& ranks, const Communicator& known, typename Communicator::request& call,
             std::span<const std::byte> from, std::span<std::byte> to, std::span<const std::size_t> cuts) {
        { known.rank() } -> std::same_as<int>;
        { known.size() } -> std::same_as<int>;
        { known.timeout() } -> std::same_as<std::chrono::nanoseconds>;
        { ranks.start_exchange(from, to, cuts) } -> std::same_as<typename Communicator::request>;
        { ranks.start_gather(to, cuts) } -> std::same_as<typename Communicator::request>;
        { ranks.finished(call) } -> std::same_as<bool>;
        ranks.wait(call);
        ranks.broadcast(to, 0);
    };

static_assert(communicator<single_rank>);

}}  // namespace mp
