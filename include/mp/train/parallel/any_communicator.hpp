// SPDX-License-Identifier: MIT
/// \file
/// A communicator of any type behind one type.
#pragma once

#include <mp/base/durations.hpp>
#include <mp/error.hpp>
#include <mp/train/parallel/communicator.hpp>

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
