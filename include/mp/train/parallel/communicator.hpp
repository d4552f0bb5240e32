// SPDX-License-Identifier: MIT
/// \file
/// What data-parallel training asks of the library that carries its messages, and a communicator of any type behind one
/// type.
#pragma once

#include <mp/base/durations.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/reducer.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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
///
/// Several reductions on one communicator need channels, see mp::channelled_communicator. A communicator may also
/// have `std::string missing(const request& call)`: which ranks have not made a call of this one, for messages; and
/// `bool ends_calls_with_rank()`: whether memory of calls that were given up is not touched any more.
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

/// A communicator whose exchanges and gathers may be on channels, each with an order of its own, so that what
/// is under way on one channel is never taken for what is on another:
///
///     int open_channel();                    // the number of a new channel, from 1; as often on all ranks
///     void close_channel(int) noexcept;      // calls of it that have not ended are given up
///     request start_exchange(from, to, cuts, int channel);
///     request start_gather(all, cuts, int channel);
///
/// Calls without a channel are on channel 0. Without channels a communicator carries one reduction at a time:
/// two whose passes overlap, in another order on another rank, are an error at finish() on the host.
template <class Communicator>
concept channelled_communicator =
    communicator<Communicator> && requires(Communicator& ranks, std::span<const std::byte> from,
                                           std::span<std::byte> to, std::span<const std::size_t> cuts) {
        { ranks.open_channel() } -> std::same_as<int>;
        { ranks.close_channel(0) } noexcept;
        { ranks.start_exchange(from, to, cuts, 1) } -> std::same_as<typename Communicator::request>;
        { ranks.start_gather(to, cuts, 1) } -> std::same_as<typename Communicator::request>;
    };

}}  // namespace mp

namespace mp::detail {

/// Kinds of collective calls. The last three wait, and have one order together.
enum class collective : unsigned char { exchange, gather, broadcast, max, sum };

}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

constexpr std::string_view name_of(collective kind) {
    constexpr std::array<std::string_view, 5> names{"exchange", "gather", "broadcast", "max", "sum"};
    return names[static_cast<std::size_t>(kind)];
}

/// Which of the orders of calls a call belongs to.
constexpr std::size_t order_of(collective kind, int channel) {
    if (kind > collective::gather) return 0;
    return 2 * static_cast<std::size_t>(channel) + (kind == collective::exchange ? 1 : 2);
}
/// The number of orders with this many channels beside channel 0.
constexpr std::size_t orders_of(int channels) {
    return order_of(collective::gather, channels) + 1;
}

/// "exchange number 7 on channel 2": which call it is, for messages.
inline std::string text_of_call(collective kind, int channel, std::uint64_t number) {
    std::string text(name_of(kind));
    text.append(" number ").append(std::to_string(number));
    if (channel != 0) text.append(" on channel ").append(std::to_string(channel));
    return text;
}

/// "rank 3 has not made <call>", of the ranks for which missing(rank); empty if there is none.
template <class Missing>
std::string text_of_missing(int ranks, const Missing& missing, std::string_view call) {
    constexpr int most = 16;
    std::string names;
    int count = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        if (!missing(rank)) continue;
        if (++count <= most) names.append(count == 1 ? "" : ", ").append(std::to_string(rank));
    }
    if (count == 0) return {};
    if (count > most) names.append(" and ").append(std::to_string(count - most)).append(" more");
    return (count == 1 ? "rank " : "ranks ") + names + (count == 1 ? " has" : " have") + " not made " +
           std::string(call);
}

/// Whether memory of calls that were given up may be freed. A library that carries messages may still write there.
template <class Ranks>
constexpr bool ends_calls_with_rank([[maybe_unused]] const Ranks& ranks) noexcept {
    if constexpr (requires { ranks.ends_calls_with_rank(); }) return ranks.ends_calls_with_rank();
    return false;
}

/// A channel of a communicator, or the communicator itself where it has none.
template <communicator Ranks>
class rank_channel {
public:
    using request = typename Ranks::request;

    explicit rank_channel(Ranks& ranks) : ranks_(ranks) {
        if constexpr (channelled_communicator<Ranks>) number_ = ranks.open_channel();
    }
    rank_channel(const rank_channel&) = delete;
    rank_channel& operator=(const rank_channel&) = delete;
    ~rank_channel() {
        if constexpr (channelled_communicator<Ranks>) ranks_.close_channel(number_);
    }

    /// The same on all ranks, as is to be checked; 0 where there are no channels.
    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                         std::span<const std::size_t> cuts) {
        if constexpr (channelled_communicator<Ranks>) {
            return ranks_.start_exchange(from, to, cuts, number_);
        } else {
            return ranks_.start_exchange(from, to, cuts);
        }
    }
    [[nodiscard]] request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts) {
        if constexpr (channelled_communicator<Ranks>) {
            return ranks_.start_gather(all, cuts, number_);
        } else {
            return ranks_.start_gather(all, cuts);
        }
    }

private:
    Ranks& ranks_;
    int number_ = 0;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A communicator by reference, whose type is known at run time only: for programs that choose between MPI,
/// threads and a single rank without being compiled for each.
///
///     mp::single_rank alone;
///     mp::any_communicator ranks(alone);
///
/// What it refers to must outlive it. A call costs an indirect one more. Not for mp::nccl_communicator, whose
/// streams a reduction must know.
class any_communicator {
public:
    /// A call that has been started.
    struct request {
        std::size_t call = 0;      ///< 1 + its place among the calls; 0 for none
        std::uint64_t number = 0;  ///< among all calls
    };

    /// Refers to `ranks`, which has to outlive this.
    template <communicator Ranks>
        requires(!std::is_same_v<Ranks, any_communicator>)
    explicit any_communicator(Ranks& ranks) : impl_(std::make_shared<model<Ranks>>(ranks)) {
        static_assert(
            !requires { ranks.fork(); },
            "mp::any_communicator: calls of this communicator are enqueued on a stream, whose order a "
            "reduction must know; use it by its own type");
    }
    // Reductions keep its address.
    any_communicator(const any_communicator&) = delete;
    any_communicator& operator=(const any_communicator&) = delete;

    [[nodiscard]] int rank() const { return impl_->rank(); }
    [[nodiscard]] int size() const { return impl_->size(); }
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return impl_->timeout(); }
    void(max)(std::span<std::uint64_t> values) { impl_->reduce(values, true); }
    void sum(std::span<std::uint64_t> values) { impl_->reduce(values, false); }
    /// A channel of what it refers to; 0, the only one, where that has none.
    [[nodiscard]] int open_channel() { return impl_->open_channel(); }
    void close_channel(int channel) noexcept { impl_->close_channel(channel); }
    /// Whether memory of calls that were given up is not touched any more.
    [[nodiscard]] bool ends_calls_with_rank() const noexcept { return impl_->ends_calls_with_rank(); }
    [[nodiscard]] request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                         std::span<const std::size_t> cuts, int channel = 0) {
        return opened([&] { return impl_->start_exchange(from, to, cuts, channel); });
    }
    [[nodiscard]] request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts,
                                       int channel = 0) {
        return opened([&] { return impl_->start_gather(all, cuts, channel); });
    }
    /// Which ranks have not made a call of this one; empty where that is not known.
    [[nodiscard]] std::string missing(const request& it) const {
        if (it.call == 0 || it.call > numbers_.size() || numbers_[it.call - 1] != it.number) return {};
        return impl_->missing(it.call - 1);
    }
    bool finished(request& it) {
        if (it.call == 0) return true;
        const std::size_t call = require_open("mp::any_communicator::finished", it);
        if (!impl_->finished(call)) return false;
        end(it);
        return true;
    }
    void wait(request& it) {
        if (it.call == 0) return;
        impl_->wait(require_open("mp::any_communicator::wait", it));
        end(it);
    }
    void broadcast(std::span<std::byte> bytes, int root) { impl_->broadcast(bytes, root); }

private:
    struct base {
        base() = default;
        base(const base&) = delete;
        base& operator=(const base&) = delete;
        virtual ~base() = default;
        [[nodiscard]] virtual int rank() const = 0;
        [[nodiscard]] virtual int size() const = 0;
        [[nodiscard]] virtual std::chrono::nanoseconds timeout() const = 0;
        virtual void reduce(std::span<std::uint64_t> values, bool largest) = 0;
        [[nodiscard]] virtual bool ends_calls_with_rank() const noexcept = 0;
        virtual int open_channel() = 0;
        virtual void close_channel(int channel) noexcept = 0;
        virtual std::size_t start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                           std::span<const std::size_t> cuts, int channel) = 0;
        virtual std::size_t start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts,
                                         int channel) = 0;
        [[nodiscard]] virtual std::size_t places() const = 0;
        [[nodiscard]] virtual std::string missing(std::size_t call) const = 0;
        virtual bool finished(std::size_t call) = 0;
        virtual void wait(std::size_t call) = 0;
        virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
    };

    template <class Ranks>
    struct model final : base {
        explicit model(Ranks& of) : ranks(of) {}
        [[nodiscard]] int rank() const override { return ranks.rank(); }
        [[nodiscard]] int size() const override { return ranks.size(); }
        [[nodiscard]] std::chrono::nanoseconds timeout() const override { return ranks.timeout(); }
        void reduce(std::span<std::uint64_t> values, bool largest) override {
            if (largest) {
                (ranks.max)(values);
            } else {
                ranks.sum(values);
            }
        }
        [[nodiscard]] bool ends_calls_with_rank() const noexcept override {
            return detail::ends_calls_with_rank(ranks);
        }
        int open_channel() override {
            if constexpr (channelled_communicator<Ranks>) return ranks.open_channel();
            return 0;
        }
        void close_channel([[maybe_unused]] int channel) noexcept override {
            if constexpr (channelled_communicator<Ranks>) ranks.close_channel(channel);
        }
        std::size_t start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                   std::span<const std::size_t> cuts, [[maybe_unused]] int channel) override {
            return keep([&] {
                if constexpr (channelled_communicator<Ranks>) {
                    return ranks.start_exchange(from, to, cuts, channel);
                } else {
                    return ranks.start_exchange(from, to, cuts);
                }
            });
        }
        std::size_t start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts,
                                 [[maybe_unused]] int channel) override {
            return keep([&] {
                if constexpr (channelled_communicator<Ranks>) {
                    return ranks.start_gather(all, cuts, channel);
                } else {
                    return ranks.start_gather(all, cuts);
                }
            });
        }
        [[nodiscard]] std::size_t places() const override { return calls.size(); }
        [[nodiscard]] std::string missing([[maybe_unused]] std::size_t call) const override {
            if constexpr (requires { ranks.missing(calls[call].of); }) return ranks.missing(calls[call].of);
            return {};
        }
        bool finished(std::size_t call) override {
            if (!ranks.finished(calls[call].of)) return false;
            calls[call].open = false;
            return true;
        }
        void wait(std::size_t call) override {
            ranks.wait(calls[call].of);
            calls[call].open = false;
        }
        void broadcast(std::span<std::byte> bytes, int root) override { ranks.broadcast(bytes, root); }

        /// A call that is under way, by its number.
        struct kept_call {
            typename Ranks::request of{};
            bool open = false;
        };
        /// Keeps the call that start() starts. Its place is made before, so that no call is lost.
        template <class Start>
        std::size_t keep(const Start& start) {
            std::size_t i = 0;
            while (i < calls.size() && calls[i].open) ++i;
            if (i == calls.size()) calls.emplace_back();
            calls[i].of = start();
            calls[i].open = true;
            return i;
        }

        Ranks& ranks;
        std::vector<kept_call> calls;
    };

    template <class Start>
    request opened(const Start& start) {
        if (numbers_.size() <= impl_->places()) numbers_.resize(impl_->places() + 1);
        const std::size_t call = start();
        numbers_[call] = ++started_;
        return {call + 1, started_};
    }
    /// Returns the place of a call under way.
    ///
    /// \throws state_error  it has ended, or is another communicator's
    [[nodiscard]] std::size_t require_open(std::string_view function, const request& it) const {
        if (it.call > numbers_.size() || numbers_[it.call - 1] != it.number) {
            detail::throw_joined<state_error>(
                {function, ": the request is of a call that has ended, or of another communicator"});
        }
        return it.call - 1;
    }
    void end(request& it) {
        numbers_[it.call - 1] = 0;
        it = {};
    }

    std::shared_ptr<base> impl_;
    std::vector<std::uint64_t> numbers_;  ///< of the calls at their places; 0 where one has ended
    std::uint64_t started_ = 0;
};

static_assert(channelled_communicator<any_communicator>);

}}  // namespace mp
