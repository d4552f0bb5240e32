// SPDX-License-Identifier: MIT
/// \file
/// Ranks that are threads of one program: for tests, and to find out what a run on many would do.
#pragma once

#include <mp/base/durations.hpp>
#include <mp/config.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

struct loopback_call;
class loopback_meeting;

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// A rank of mp::run_loopback. Checks what MPI does not: ranks whose calls differ in size or in their parts
/// are an error on all of them. Not synchronised: it belongs to the thread of its rank.
class loopback_communicator {
public:
    /// A call that has been started.
    struct request {
        detail::loopback_call* call = nullptr;
        std::uint64_t number = 0;  ///< among the calls of the rank
    };
    /// Memory of calls that were given up is not touched any more.
    static MP_ALWAYS_INLINE constexpr bool ends_calls_with_rank() noexcept { return true; }

    /// Made by run_loopback() for each rank; `timeout` is how long a call may wait for all.
    loopback_communicator(detail::loopback_meeting& place, int rank, std::chrono::nanoseconds timeout);
    // Reducers are kept by their address.
    loopback_communicator(const loopback_communicator&) = delete;
    loopback_communicator& operator=(const loopback_communicator&) = delete;
    ~loopback_communicator();

    [[nodiscard]] MP_ALWAYS_INLINE int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept;
    [[nodiscard]] MP_ALWAYS_INLINE std::chrono::nanoseconds timeout() const noexcept { return timeout_; }

    /// See mp::channelled_communicator.
    [[nodiscard]] int open_channel();
    /// The memory of calls that were given up is not touched any more.
    void close_channel(int channel) noexcept;
    [[nodiscard]] request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                         std::span<const std::size_t> cuts, int channel = 0);
    [[nodiscard]] request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts,
                                       int channel = 0);
    /// Which ranks have not made a call of this one; empty if all have.
    [[nodiscard]] std::string missing(const request& it) const;
    bool finished(request& it);
    void wait(request& it);

    void broadcast(std::span<std::byte> bytes, int root);
    void(max)(std::span<std::uint64_t> values);
    void sum(std::span<std::uint64_t> values);

private:
    request start(detail::collective kind, std::span<const std::byte> sent, std::byte* to,
                  std::span<const std::size_t> cuts, std::size_t bytes, int channel = 0, int root = 0);
    void end(request& it);
    /// Returns the call among those under way. A copy of a request that has ended is none of them.
    ///
    /// \throws state_error  it has ended, or is another rank's
    std::vector<request>::iterator require_open(std::string_view function, const request& it);
    /// Other ranks may wait for any call of this one.
    void progress();
    void wait_for(std::string_view function, request& it);
    void reduce(detail::collective kind, std::span<std::uint64_t> values);

    detail::loopback_meeting* place_;
    int rank_;
    std::chrono::nanoseconds timeout_;
    int channels_ = 0;                    // beside channel 0
    std::vector<std::uint64_t> numbers_;  // of next calls
    std::uint64_t started_ = 0;
    std::vector<request> open_;
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Calls run(function, ranks) for every rank, see run_loopback.
MP_CORE_FUNCTION void run_ranks(int ranks, std::chrono::nanoseconds timeout, void* function,
                                void (*run)(void*, loopback_communicator&));

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

static_assert(channelled_communicator<loopback_communicator>);

/// Runs f(ranks), where `ranks` is an mp::loopback_communicator&, once for every rank, each on a thread of its
/// own, and returns when all have ended. A rank that ends with an exception ends the calls of the others with
/// a rank_error, as mpirun ends the others by a signal; the first exception is then thrown here.
///
///     mp::run_loopback(4, [](auto& ranks) {
///         mp::gradient_reduction reduction(mp::cpu{}, ranks, {}, store);
///         ...
///     });
///
/// \param timeout  how long calls wait for all ranks; positive
/// \throws argument_error  ranks is not positive, or the timeout is not
template <class Function>
void run_loopback(int ranks, Function f, std::chrono::nanoseconds timeout = default_rank_timeout) {
    detail::run_ranks(ranks, timeout, &f, [](void* function, loopback_communicator& self) {
        (*static_cast<Function*>(function))(self);
    });
}

}}  // namespace mp

#if MP_CORE_BODIES
#include <mp/train/parallel/loopback_functions.hpp>
#endif
