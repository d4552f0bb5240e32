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

#if MP_CORE_BODIES
#include <mp/error.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#endif

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
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The data of one rank in a call. What is sent is copied, because the memory of a rank that fails is freed.
struct loopback_memory {
    std::vector<std::byte> sent = {};
    std::byte* to = nullptr;
    std::vector<std::size_t> cuts = {};
    std::size_t bytes = 0;
    bool arrived = false;
    bool served = false;  ///< its data has been delivered
};

/// A collective call, from the first rank that makes it to the last that leaves it.
struct loopback_call {
    collective kind;
    int channel;
    std::uint64_t number;  ///< in its order
    int root;
    std::vector<loopback_memory> ranks;
    int arrived = 0;
    int served = 0;
    int left = 0;
};

/// State shared by the ranks of a run.
class loopback_meeting {
public:
    explicit loopback_meeting(int ranks) : ranks_(ranks) {}
    [[nodiscard]] int size() const noexcept { return ranks_; }

    /// Enters a rank into the call with this number. If it throws, the rank has not arrived.
    loopback_call* arrive(int rank, collective kind, int channel, std::uint64_t number,
                          loopback_memory memory, int root) {
        const std::lock_guard lock(mutex_);
        require_whole();
        auto it = std::find_if(calls_.begin(), calls_.end(), [&](const loopback_call& call) {
            return order_of(call.kind, call.channel) == order_of(kind, channel) && call.number == number;
        });
        if (it == calls_.end()) {
            // Other ranks find whole calls only, also where there is no memory for another one.
            std::list<loopback_call> made;
            made.push_back({kind, channel, number, root,
                            std::vector<loopback_memory>(static_cast<std::size_t>(ranks_))});
            it = made.begin();
            calls_.splice(calls_.end(), made);
        } else {
            require_same(rank, *it, kind, memory, root);
        }
        memory.arrived = true;
        it->ranks[static_cast<std::size_t>(rank)] = std::move(memory);
        if (++it->arrived == ranks_) changed_.notify_all();
        return &*it;
    }
    /// Names the ranks that have not arrived; empty if all have.
    [[nodiscard]] std::string missing(const loopback_call& call) {
        const std::lock_guard lock(mutex_);
        return text_of_missing(
            ranks_, [&](int rank) { return !call.ranks[static_cast<std::size_t>(rank)].arrived; },
            text_of_call(call.kind, call.channel, call.number));
    }

    /// Delivers the data of a rank if all have arrived. Returns true if all ranks have theirs.
    bool serve(int rank, loopback_call& call) {
        {
            const std::lock_guard lock(mutex_);
            require_whole();
            if (call.arrived != ranks_) return false;
            if (call.ranks[static_cast<std::size_t>(rank)].served) return call.served == ranks_;
        }
        take(rank, call);  // without the lock: all ranks read the sent bytes, and none writes them
        const std::lock_guard lock(mutex_);
        call.ranks[static_cast<std::size_t>(rank)].served = true;
        if (++call.served == ranks_) changed_.notify_all();
        return call.served == ranks_;
    }
    void leave(loopback_call* call) {
        const std::lock_guard lock(mutex_);
        if (++call->left == ranks_) calls_.remove_if([&](const loopback_call& it) { return &it == call; });
    }

    /// Waits for a change, at most 1 ms.
    void doze() {
        std::unique_lock lock(mutex_);
        if (!failed_) changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    /// No call ends any more, and all ranks throw rank_error: a rank has ended, or, with no_rank, there are not
    /// threads for all. Takes no memory, which may be what is missing.
    void fail(int rank) {
        const std::lock_guard lock(mutex_);
        if (!failed_) ended_ = rank;
        failed_ = true;
        changed_.notify_all();
    }
    static constexpr int no_rank = -1;

private:
    /// A call that differs from that of another rank ends all ranks.
    void require_same(int rank, const loopback_call& call, collective kind, const loopback_memory& memory,
                      int root) {
        const loopback_memory& other = *std::find_if(call.ranks.begin(), call.ranks.end(),
                                                     [](const auto& there) { return there.arrived; });
        if (call.kind == kind && other.bytes == memory.bytes && other.cuts == memory.cuts &&
            call.root == root) {
            return;
        }
        std::string message = "mp::loopback: rank " + std::to_string(rank) + " makes " +
                              text_of_call(kind, call.channel, call.number) + " with " +
                              std::to_string(memory.bytes) + " bytes, where another rank has " +
                              std::string(call.kind == kind ? "" : name_of(call.kind)) +
                              (call.kind == kind ? "" : " with ") + std::to_string(other.bytes) +
                              ", or other cuts or another root";
        failure_ = std::move(message);
        failed_ = true;
        changed_.notify_all();
        require_whole();
    }
    void require_whole() const {
        if (!failed_) return;
        if (!failure_.empty()) throw_error(rank_error(failure_));
        if (ended_ == no_rank)
            throw_error(rank_error("mp::run_loopback: there are no threads for all ranks"));
        throw_joined<rank_error>(
            {"mp::loopback: rank ", std::to_string(ended_), " has ended with an exception"});
    }

    static void take(int rank, loopback_call& call) {
        const auto self = static_cast<std::size_t>(rank);
        const loopback_memory& mine = call.ranks[self];
        const auto copy = [](std::byte* to, const std::byte* from, std::size_t bytes) {
            if (bytes != 0) std::memcpy(to, from, bytes);
        };
        for (std::size_t r = 0; r < call.ranks.size(); ++r) {
            const loopback_memory& other = call.ranks[r];
            switch (call.kind) {
                case collective::exchange: {
                    const std::size_t part = mine.cuts[self + 1] - mine.cuts[self];
                    copy(mine.to + r * part, other.sent.data() + mine.cuts[self], part);
                    break;
                }
                case collective::gather:
                    if (r != self) copy(mine.to + mine.cuts[r], other.sent.data(), other.sent.size());
                    break;
                case collective::broadcast:
                    if (r != self) copy(mine.to, other.sent.data(), other.sent.size());
                    break;
                case collective::max:
                case collective::sum:
                    for (std::size_t at = 0; at < mine.bytes; at += sizeof(std::uint64_t)) {
                        std::uint64_t value = 0, result = 0;
                        std::memcpy(&value, other.sent.data() + at, sizeof value);
                        if (r != 0) std::memcpy(&result, mine.to + at, sizeof result);
                        result = call.kind == collective::sum ? result + value : (std::max)(result, value);
                        std::memcpy(mine.to + at, &result, sizeof result);
                    }
                    break;
            }
        }
    }

    int ranks_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<loopback_call> calls_;  // whose elements stay in place
    bool failed_ = false;
    std::string failure_;  ///< why, or empty if
    int ended_ = no_rank;  ///< this rank has ended
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION loopback_communicator::loopback_communicator(detail::loopback_meeting& place, int rank,
                                                              std::chrono::nanoseconds timeout)
    : place_(&place), rank_(rank), timeout_(timeout), numbers_(detail::orders_of(0)) {}
MP_CORE_FUNCTION int loopback_communicator::size() const noexcept {
    return place_->size();
}
MP_CORE_FUNCTION int loopback_communicator::open_channel() {
    numbers_.resize(detail::orders_of(channels_ + 1));
    return ++channels_;
}
MP_CORE_FUNCTION void loopback_communicator::close_channel(int channel) noexcept {
    std::erase_if(open_, [channel](const request& it) { return it.call->channel == channel; });
}
MP_CORE_FUNCTION loopback_communicator::request loopback_communicator::start_exchange(
    std::span<const std::byte> from, std::span<std::byte> to, std::span<const std::size_t> cuts,
    int channel) {
    return start(detail::collective::exchange, from, to.data(), cuts, from.size(), channel);
}
MP_CORE_FUNCTION loopback_communicator::request loopback_communicator::start_gather(
    std::span<std::byte> all, std::span<const std::size_t> cuts, int channel) {
    const auto self = static_cast<std::size_t>(rank_);
    return start(detail::collective::gather, all.subspan(cuts[self], cuts[self + 1] - cuts[self]), all.data(),
                 cuts, all.size(), channel);
}
MP_CORE_FUNCTION std::string loopback_communicator::missing(const request& it) const {
    return it.call == nullptr ? std::string() : place_->missing(*it.call);
}
MP_CORE_FUNCTION bool loopback_communicator::finished(request& it) {
    progress();
    if (it.call == nullptr) return true;
    static_cast<void>(require_open("mp::loopback_communicator::finished", it));
    if (!place_->serve(rank_, *it.call)) return false;
    end(it);
    return true;
}
MP_CORE_FUNCTION void loopback_communicator::wait(request& it) {
    wait_for("mp::loopback_communicator::wait", it);
}
MP_CORE_FUNCTION void loopback_communicator::broadcast(std::span<std::byte> bytes, int root) {
    const std::span<const std::byte> sent = bytes.first(rank_ == root ? bytes.size() : 0);
    request it = start(detail::collective::broadcast, sent, bytes.data(), {}, bytes.size(), 0, root);
    wait_for("mp::loopback_communicator::broadcast", it);
}
MP_CORE_FUNCTION void(loopback_communicator::max)(std::span<std::uint64_t> values) {
    reduce(detail::collective::max, values);
}
MP_CORE_FUNCTION void loopback_communicator::sum(std::span<std::uint64_t> values) {
    reduce(detail::collective::sum, values);
}
MP_CORE_FUNCTION loopback_communicator::request loopback_communicator::start(
    detail::collective kind, std::span<const std::byte> sent, std::byte* to,
    std::span<const std::size_t> cuts, std::size_t bytes, int channel, int root) {
    if (channel < 0 || channel > channels_) {
        detail::throw_argument("mp::loopback_communicator", "channel", channel,
                               "must be 0 or what open_channel() has returned");
    }
    std::uint64_t& number = numbers_[detail::order_of(kind, channel)];
    if (open_.size() == open_.capacity()) open_.reserve(2 * open_.size() + 4);
    // What takes memory is done: from here on the call is made.
    request it{place_->arrive(rank_, kind, channel, number,
                              {{sent.begin(), sent.end()}, to, {cuts.begin(), cuts.end()}, bytes}, root),
               ++started_};
    ++number;
    open_.push_back(it);
    return it;
}
MP_CORE_FUNCTION void loopback_communicator::end(request& it) {
    open_.erase(require_open("mp::loopback_communicator", it));
    place_->leave(it.call);
    it = {};
}
MP_CORE_FUNCTION auto loopback_communicator::require_open(std::string_view function, const request& it)
    -> std::vector<request>::iterator {
    const auto found = std::find_if(open_.begin(), open_.end(), [&](const request& open) {
        return open.call == it.call && open.number == it.number;
    });
    if (found == open_.end()) {
        detail::throw_joined<state_error>(
            {function, ": the request is of a call that has ended, or of another communicator"});
    }
    return found;
}
MP_CORE_FUNCTION void loopback_communicator::progress() {
    for (const request& it : open_) static_cast<void>(place_->serve(rank_, *it.call));
}
MP_CORE_FUNCTION void loopback_communicator::wait_for(std::string_view function, request& it) {
    const auto start = std::chrono::steady_clock::now();
    while (!finished(it)) {
        if (std::chrono::steady_clock::now() - start > timeout_) {
            detail::throw_error(
                rank_timeout(std::string(function) + ": after " +
                             detail::error_text(std::chrono::duration<double>(timeout_).count()) +
                             " seconds not all ranks have made this call: " + missing(it)));
        }
        place_->doze();
    }
}
MP_CORE_FUNCTION void loopback_communicator::reduce(detail::collective kind,
                                                    std::span<std::uint64_t> values) {
    request it = start(kind, std::as_bytes(values), reinterpret_cast<std::byte*>(values.data()), {},
                       values.size_bytes());
    wait_for("mp::loopback_communicator", it);
}
MP_CORE_FUNCTION loopback_communicator::~loopback_communicator() = default;

}}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void run_ranks(int ranks, std::chrono::nanoseconds timeout, void* function,
                                void (*run)(void*, loopback_communicator&)) {
    if (ranks < 1) throw_argument("mp::run_loopback", "ranks", ranks, "must be at least 1");
    require_timeout("mp::run_loopback", timeout);
    loopback_meeting place(ranks);
    std::mutex mutex;
    std::exception_ptr first;
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(ranks));
    const auto run_one = [&](int rank) {
        const std::exception_ptr failure = exception_of([&] {
            loopback_communicator self(place, rank, timeout);
            run(function, self);
        });
        if (!failure) return;
        {
            const std::lock_guard lock(mutex);
            if (!first) first = failure;
        }
        place.fail(rank);
    };
    const std::exception_ptr no_thread = exception_of([&] {
        for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_one, rank);
    });
    if (no_thread) place.fail(loopback_meeting::no_rank);
    for (std::thread& it : threads) it.join();
    if (no_thread) std::rethrow_exception(no_thread);
    if (first) std::rethrow_exception(first);
}

}}  // namespace mp::detail
#endif
