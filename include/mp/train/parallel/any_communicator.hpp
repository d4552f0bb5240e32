// SPDX-License-Identifier: MIT
/// \file
/// A communicator of any type behind one type.
#pragma once

#include <mp/error.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <chrono>
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
/// What it refers to must outlive it. A call costs an indirect one more.
class any_communicator {
public:
    /// A call that has been started.
    struct request {
        std::size_t call = 0;      ///< 1 + its place among the calls; 0 for none
        std::uint64_t number = 0;  ///< among all calls
    };

    template <communicator Ranks>
        requires(!std::is_same_v<Ranks, any_communicator>)
    explicit any_communicator(Ranks& ranks) : impl_(std::make_unique<model<Ranks>>(ranks)) {}
    // Reductions keep its address.
    any_communicator(const any_communicator&) = delete;
    any_communicator& operator=(const any_communicator&) = delete;

    [[nodiscard]] int rank() const { return impl_->rank(); }
    [[nodiscard]] int size() const { return impl_->size(); }
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return impl_->timeout(); }
    void(max)(std::span<std::uint64_t> values) { impl_->reduce(values, true); }
    void sum(std::span<std::uint64_t> values) { impl_->reduce(values, false); }
    [[nodiscard]] request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                         std::span<const std::size_t> cuts) {
        return opened(impl_->start_exchange(from, to, cuts));
    }
    [[nodiscard]] request start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts) {
        return opened(impl_->start_gather(all, cuts));
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
        virtual std::size_t start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                           std::span<const std::size_t> cuts) = 0;
        virtual std::size_t start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts) = 0;
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
        std::size_t start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                   std::span<const std::size_t> cuts) override {
            return keep(ranks.start_exchange(from, to, cuts));
        }
        std::size_t start_gather(std::span<std::byte> all, std::span<const std::size_t> cuts) override {
            return keep(ranks.start_gather(all, cuts));
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
            bool open = true;
        };
        std::size_t keep(typename Ranks::request started) {
            for (std::size_t i = 0; i < calls.size(); ++i) {
                if (calls[i].open) continue;
                calls[i] = {std::move(started)};
                return i;
            }
            calls.push_back({std::move(started)});
            return calls.size() - 1;
        }

        Ranks& ranks;
        std::vector<kept_call> calls;
    };

    request opened(std::size_t call) {
        if (call >= numbers_.size()) numbers_.resize(call + 1);
        numbers_[call] = ++started_;
        return {call + 1, started_};
    }
    /// Returns the place of a call under way.
    ///
    /// \throws state_error  it has ended, or is another communicator's
    [[nodiscard]] std::size_t require_open(std::string_view function, const request& it) const {
        if (it.call > numbers_.size() || numbers_[it.call - 1] != it.number) {
            detail::throw_error(
                state_error(std::string(function) +
                            ": the request is of a call that has ended, or of another communicator"));
        }
        return it.call - 1;
    }
    void end(request& it) {
        numbers_[it.call - 1] = 0;
        it = {};
    }

    std::unique_ptr<base> impl_;
    std::vector<std::uint64_t> numbers_;  ///< of the calls at their places; 0 where one has ended
    std::uint64_t started_ = 0;
};

static_assert(communicator<any_communicator>);

}}  // namespace mp
