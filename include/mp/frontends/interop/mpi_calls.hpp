// SPDX-License-Identifier: MIT
/// \file
/// Errors of MPI, and collective calls over MPI that compare what the ranks do. For <mp/frontends/interop/mpi.hpp>.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/train/parallel/communicator.hpp>

#include <mpi.h>

#include <algorithm>
#include <array>
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
class mpi_error : public rank_error {
public:
    mpi_error(std::string_view call, int code)
        : rank_error(std::string(call) + ": " + text_of(code) + " (" + detail::error_text(code) + ")"),
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
    if (flag == 0) throw_joined<state_error>({function, ": call MPI_Init or MPI_Init_thread before"});
    check_mpi(MPI_Finalized(&flag), "MPI_Finalized");
    if (flag != 0) throw_joined<state_error>({function, ": MPI_Finalize has been called"});
}

/// As require_mpi(), and unless this thread may call MPI.
inline void require_mpi_thread(std::string_view function) {
    require_mpi(function);
    int level = MPI_THREAD_SINGLE;
    int in_main_thread = 0;
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
    check_mpi(MPI_Is_thread_main(&in_main_thread), "MPI_Is_thread_main");
    if (in_main_thread == 0 && level < MPI_THREAD_SERIALIZED) {
        throw_joined<state_error>(
            {function,
             ": called by another thread than the one that initialised MPI, which needs "
             "MPI_Init_thread with MPI_THREAD_SERIALIZED"});
    }
}

/// While it lives, errors that MPI raises on its world communicator, which some libraries do with those of other
/// communicators, are returned and do not end the program, as far as that has left the handler as it is by default.
class mpi_errors_returned {
public:
    mpi_errors_returned() noexcept {
        MPI_Errhandler before = MPI_ERRHANDLER_NULL;
        if (MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before) != MPI_SUCCESS) return;
        const bool fatal = before == MPI_ERRORS_ARE_FATAL;
        static_cast<void>(MPI_Errhandler_free(&before));
        changed_ = fatal && MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS;
    }
    mpi_errors_returned(const mpi_errors_returned&) = delete;
    mpi_errors_returned& operator=(const mpi_errors_returned&) = delete;
    ~mpi_errors_returned() {
        if (changed_) static_cast<void>(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    }

private:
    bool changed_ = false;
};

/// The collective calls of a duplicate of a communicator. Ranks first tell each other which call they make, by a
/// message of a few bytes between each two of them: so calls that differ are an error on all ranks, a time-out can name
/// the ranks that did not come, and a few values need no second message. The bytes of exchanges and gathers
/// are messages between two ranks as well, with a tag for each order of calls (see order_of()); they are sent when
/// all ranks are known to make the call.
class mpi_calls {
public:
    /// A call that has been started.
    struct request {
        std::size_t call = 0;      ///< 1 + its place among the calls; 0 for none
        std::uint64_t number = 0;  ///< among all calls
    };
    /// Bytes of a message by default: counts of MPI are int.
    static constexpr std::size_t largest_message = std::size_t{1} << 30;

    /// Collective. `name` is that of the class in messages, and outlives this object.
    mpi_calls(std::string_view name, MPI_Comm communicator, std::chrono::nanoseconds timeout,
              std::size_t message)
        : name_(name), timeout_(timeout), message_(message) {
        require_timeout(name, timeout);
        if (message < sizeof(std::uint64_t) || message > INT_MAX) {
            throw_argument(name, "largest_message", message, "must be from 8 to 2^31 - 1");
        }
        require_mpi(name);
        if (communicator == MPI_COMM_NULL) {
            throw_joined<argument_error>({name, ": communicator is MPI_COMM_NULL; it must have ranks"});
        }
        const mpi_errors_returned returned;
        int between_groups = 0;
        check_mpi(MPI_Comm_test_inter(communicator, &between_groups), "MPI_Comm_test_inter");
        if (between_groups != 0) {
            throw_joined<argument_error>({name,
                                          ": communicator joins two groups; it must be an "
                                          "intracommunicator, as MPI_Intercomm_merge makes"});
        }
        check_mpi(MPI_Comm_rank(communicator, &rank_), "MPI_Comm_rank");
        check_mpi(MPI_Comm_size(communicator, &size_), "MPI_Comm_size");
        // MPI may write to it until the request completes; after a time-out it is leaked intentionally.
        auto* const duplicate = new MPI_Comm(MPI_COMM_NULL);
        MPI_Request made = MPI_REQUEST_NULL;
        check_mpi(MPI_Comm_idup(communicator, duplicate, &made), "MPI_Comm_idup");
        wait_for_ranks(name, timeout_, advice, [&] {
            int done = 0;
            check_mpi(MPI_Test(&made, &done, MPI_STATUS_IGNORE), "MPI_Test");
            return done != 0;
        });
        communicator_ = *duplicate;
        delete duplicate;
        const int status = MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
        if (status != MPI_SUCCESS) {
            static_cast<void>(MPI_Comm_free(&communicator_));
            throw_error(mpi_error("MPI_Comm_set_errhandler", status));
        }
    }
    mpi_calls(const mpi_calls&) = delete;
    mpi_calls& operator=(const mpi_calls&) = delete;
    /// Collective, unless a call has not ended.
    ~mpi_calls() {
        bool whole = !broken_;
        for (std::unique_ptr<call>& it : calls_) {
            if (!it->open) continue;
            whole = false;
            static_cast<void>(it.release());  // MPI may still read and write it, so it is never freed
        }
        int finalized = 0;
        if (whole && MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0) {
            static_cast<void>(MPI_Comm_free(&communicator_));
        }
    }

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return size_; }
    [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
    void set_timeout(std::chrono::nanoseconds timeout) noexcept { timeout_ = timeout; }
    [[nodiscard]] MPI_Comm communicator() const noexcept { return communicator_; }

    [[nodiscard]] int open_channel() {
        const mpi_errors_returned returned;
        const int* largest_tag = nullptr;
        int known = 0;
        check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&largest_tag), &known),
                  "MPI_Comm_get_attr");
        const std::size_t tags = known != 0 ? static_cast<std::size_t>(*largest_tag) : 32767;
        if (2 * orders_of(channels_ + 1) > tags) {
            throw_joined<state_error>({name_, "::open_channel: there are ", std::to_string(channels_),
                                       " channels, and this MPI has no tags for another one; make another "
                                       "communicator"});
        }
        numbers_.resize(orders_of(channels_ + 1));
        return ++channels_;
    }

    void reduce(std::string_view function, collective kind, std::span<std::uint64_t> values) {
        require_mpi_thread(function);
        const mpi_errors_returned returned;
        call& it = begin(function, kind, 0, values.size_bytes(), {}, 0, values);
        meet(function, it);
        const auto combine = [kind](std::uint64_t a, std::uint64_t b) {
            return kind == collective::sum ? a + b : (std::max)(a, b);
        };
        if (values.size() <= values_in_head) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                for (int r = 0; r < size_; ++r) {
                    const auto at = static_cast<std::size_t>(r);
                    if (r != rank_) values[i] = combine(values[i], it.theirs[at].values[i]);
                }
            }
        } else {
            // In memory that outlives a call which is given up; it grows at the first calls only.
            it.values.assign(values.begin(), values.end());
            const MPI_Op operation = kind == collective::sum ? MPI_SUM : MPI_MAX;
            for_pieces(values.size_bytes(), message_ / sizeof(std::uint64_t) * sizeof(std::uint64_t),
                       [&](std::size_t at, std::size_t bytes) {
                           finish(function, it, "MPI_Iallreduce", [&](MPI_Request& started) {
                               return MPI_Iallreduce(MPI_IN_PLACE, it.values.data() + at / 8,
                                                     static_cast<int>(bytes / 8), MPI_UINT64_T, operation,
                                                     communicator_, &started);
                           });
                       });
            std::copy(it.values.begin(), it.values.end(), values.begin());
        }
        close(it);
    }
    void broadcast(std::string_view function, std::span<std::byte> bytes, int root) {
        require_mpi_thread(function);
        if (root < 0 || root >= size_) {
            throw_argument(function, "root", root, "must be from 0 to " + error_text(size_ - 1));
        }
        const mpi_errors_returned returned;
        call& it = begin(function, collective::broadcast, 0, bytes.size(), {}, root, {});
        meet(function, it);
        for_pieces(bytes.size(), message_, [&](std::size_t at, std::size_t count) {
            finish(function, it, "MPI_Ibcast", [&](MPI_Request& started) {
                return MPI_Ibcast(bytes.data() + at, static_cast<int>(count), MPI_BYTE, root, communicator_,
                                  &started);
            });
        });
        close(it);
    }
    [[nodiscard]] request start_exchange(std::string_view function, std::span<const std::byte> from,
                                         std::span<std::byte> to, std::span<const std::size_t> cuts,
                                         int channel) {
        require_mpi_thread(function);
        const mpi_errors_returned returned;
        call& it = begin(function, collective::exchange, channel, from.size(), cuts, 0, {});
        it.from = from;
        it.to = to;
        return started(it);
    }
    [[nodiscard]] request start_gather(std::string_view function, std::span<std::byte> all,
                                       std::span<const std::size_t> cuts, int channel) {
        require_mpi_thread(function);
        const mpi_errors_returned returned;
        call& it = begin(function, collective::gather, channel, all.size(), cuts, 0, {});
        it.to = all;
        return started(it);
    }
    bool finished(std::string_view function, request& started) {
        if (started.call == 0) return true;
        call& it = require_open(function, started);
        const mpi_errors_returned returned;
        if (!test(it)) return false;
        close(it);
        started = {};
        return true;
    }
    void wait(std::string_view function, request& started) {
        if (started.call == 0) return;
        call& it = require_open(function, started);
        const mpi_errors_returned returned;
        const bool was_broken = std::exchange(broken_, true);
        wait_for_ranks(function, timeout_, advice, [&] { return test(it); }, [&] { return missing(it); });
        broken_ = was_broken;
        close(it);
        started = {};
    }
    [[nodiscard]] std::string missing(const request& started) const {
        if (!is_open(started)) return {};
        const mpi_errors_returned returned;
        return missing(*calls_[started.call - 1]);
    }

private:
    static constexpr std::string_view advice = "save what can be saved and end by MPI_Abort";
    static constexpr std::size_t values_in_head = 8;

    /// What a rank says of a call.
    struct head {
        collective kind = collective::exchange;
        int root = 0;
        std::uint64_t number = 0;
        std::uint64_t bytes = 0;
        std::uint64_t cuts = 0;  ///< their checksum, and the largest message
        std::array<std::uint64_t, values_in_head> values{};

        [[nodiscard]] bool same(const head& other) const noexcept {
            return kind == other.kind && root == other.root && number == other.number &&
                   bytes == other.bytes && cuts == other.cuts;
        }
        [[nodiscard]] std::string text(int channel) const {
            std::string result = text_of_call(kind, channel, number);
            result.append(" with ").append(std::to_string(bytes)).append(" bytes");
            if (kind == collective::broadcast) result.append(" of rank ").append(std::to_string(root));
            return result;
        }
    };
    /// A call under way and what MPI reads and writes until it ends.
    struct call {
        std::size_t index = 0;  ///< in calls_
        bool open = false;
        bool compared = false;  ///< whether all ranks are known to make this call
        int channel = 0;
        std::uint64_t started = 0;  ///< its number among all calls
        head mine;
        std::vector<head> theirs;
        std::vector<MPI_Request> heads;     ///< of every rank, which are received
        std::vector<MPI_Request> messages;  ///< all others
        std::vector<std::uint64_t> values;
        std::span<const std::byte> from;  ///< of an exchange; what is gathered is in `to`
        std::span<std::byte> to;
        std::vector<std::size_t> cuts;
    };

    [[nodiscard]] static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
    /// The ranks in an order in which not all send to the same one at once.
    [[nodiscard]] int after(int i) const { return (rank_ + i) % size_; }
    [[nodiscard]] int before(int i) const { return (rank_ + size_ - i) % size_; }
    [[nodiscard]] static int tag_of(const call& it, bool of_head) {
        return static_cast<int>(2 * order_of(it.mine.kind, it.channel) + (of_head ? 0 : 1));
    }
    template <class Function>
    static void for_pieces(std::size_t bytes, std::size_t most, const Function& f) {
        for (std::size_t at = 0; at < bytes; at += most) f(at, (std::min)(most, bytes - at));
    }

    /// Tells all ranks of a call, which is this rank's next one in its order.
    call& begin(std::string_view function, collective kind, int channel, std::size_t bytes,
                std::span<const std::size_t> cuts, int root, std::span<const std::uint64_t> values) {
        if (broken_) {
            throw_joined<state_error>(
                {function,
                 ": a call before this one has failed on the way, so the ranks no longer agree; "
                 "save what can be saved and end by MPI_Abort"});
        }
        if (channel < 0 || channel > channels_) {
            throw_argument(function, "channel", channel, "must be 0 or what open_channel() has returned");
        }
        call& it = free_call();
        it.compared = false;
        it.channel = channel;
        it.started = ++started_;
        const std::string_view bytes_of_cuts(reinterpret_cast<const char*>(cuts.data()), cuts.size_bytes());
        std::uint64_t& number = numbers_[order_of(kind, channel)];
        it.mine = {kind, root, number, bytes, crc64(bytes_of_cuts) + message_, {}};
        std::copy_n(values.begin(), (std::min)(values.size(), values_in_head), it.mine.values.begin());
        it.cuts.assign(cuts.begin(), cuts.end());
        it.messages.clear();
        uncompared_.push_back(&it);
        it.open = true;
        broken_ = true;  // until all of it has gone out
        for (int i = 1; i < size_; ++i) {
            const std::size_t r = index(before(i));
            check_mpi(MPI_Irecv(&it.theirs[r], sizeof(head), MPI_BYTE, before(i), tag_of(it, true),
                                communicator_, &it.heads[r]),
                      "MPI_Irecv");
        }
        for (int i = 1; i < size_; ++i) {
            MPI_Request& sent = it.messages.emplace_back(MPI_REQUEST_NULL);
            check_mpi(
                MPI_Isend(&it.mine, sizeof(head), MPI_BYTE, after(i), tag_of(it, true), communicator_, &sent),
                "MPI_Isend");
        }
        ++number;
        return it;
    }
    request started(call& it) {
        broken_ = false;
        return {it.index + 1, it.started};
    }
    void close(call& it) noexcept {
        it.open = false;
        free_.push_back(it.index);  // within its capacity
    }
    /// Sends the bytes of an exchange or a gather, which all ranks are known to make.
    void move_bytes(call& it) {
        const auto part = [&](auto bytes, int r) {
            return bytes.subspan(it.cuts[index(r)], it.cuts[index(r) + 1] - it.cuts[index(r)]);
        };
        if (it.mine.kind == collective::exchange) {
            const std::size_t own = it.cuts[index(rank_) + 1] - it.cuts[index(rank_)];
            for (int i = 0; i < size_; ++i) {
                receive(it, it.to.subspan(index(before(i)) * own, own), before(i));
            }
            for (int i = 0; i < size_; ++i) send(it, part(it.from, after(i)), after(i));
        } else if (it.mine.kind == collective::gather) {
            for (int i = 1; i < size_; ++i) receive(it, part(it.to, before(i)), before(i));
            for (int i = 1; i < size_; ++i) send(it, part(it.to, rank_), after(i));
        }
    }
    void receive(call& it, std::span<std::byte> to, int from) {
        for_pieces(to.size(), message_, [&](std::size_t at, std::size_t count) {
            MPI_Request& message = it.messages.emplace_back(MPI_REQUEST_NULL);
            check_mpi(MPI_Irecv(to.data() + at, static_cast<int>(count), MPI_BYTE, from, tag_of(it, false),
                                communicator_, &message),
                      "MPI_Irecv");
        });
    }
    void send(call& it, std::span<const std::byte> from, int to) {
        for_pieces(from.size(), message_, [&](std::size_t at, std::size_t count) {
            MPI_Request& message = it.messages.emplace_back(MPI_REQUEST_NULL);
            check_mpi(MPI_Isend(from.data() + at, static_cast<int>(count), MPI_BYTE, to, tag_of(it, false),
                                communicator_, &message),
                      "MPI_Isend");
        });
    }
    /// Waits until all ranks are known to make a call.
    void meet(std::string_view function, call& it) {
        wait_for_ranks(function, timeout_, advice, [&] { return test(it); }, [&] { return missing(it); });
        broken_ = false;
    }
    /// Makes a call of MPI, which all ranks are known to make, and waits for it.
    template <class Start>
    void finish(std::string_view function, call& it, std::string_view name, const Start& start) {
        it.messages.assign(1, MPI_REQUEST_NULL);
        const int status = start(it.messages[0]);
        if (status != MPI_SUCCESS) close(it);
        check_mpi(status, name);
        broken_ = true;
        wait_for_ranks(
            function, timeout_, advice,
            [&] {
                progress();
                return all_done(it.messages);
            },
            [&] { return missing(it); });
        broken_ = false;
    }

    /// Whether a call has ended.
    ///
    /// \throws rank_error  a rank makes another call than this one: on all ranks
    bool test(call& it) {
        progress();
        return it.compared && all_done(it.messages);
    }
    /// Compares the calls whose heads have arrived and sends their bytes, in the order of the calls of each order: other
    /// ranks may wait for any of them.
    void progress() {
        blocked_.assign(numbers_.size(), false);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < uncompared_.size(); ++i) {
            call& it = *uncompared_[i];
            const std::size_t order = order_of(it.mine.kind, it.channel);
            if (blocked_[order] || !all_done(it.heads)) {
                blocked_[order] = true;
                uncompared_[kept++] = &it;
                continue;
            }
            compare(it);
            it.compared = true;
            move_bytes(it);
        }
        uncompared_.resize(kept);
    }
    void compare(const call& it) {
        for (int r = 0; r < size_; ++r) {
            const head& other = it.theirs[index(r)];
            if (r == rank_ || other.same(it.mine)) continue;
            broken_ = true;
            throw_joined<rank_error>(
                {name_, ": rank ", std::to_string(r), " makes ", other.text(it.channel),
                 ", where this rank makes ", it.mine.text(it.channel),
                 other.cuts == it.mine.cuts ? "" : ", with other cuts or another largest message"});
        }
    }
    bool all_done(std::vector<MPI_Request>& requests) {
        if (statuses_.size() < requests.size()) statuses_.resize(requests.size());
        int done = 0;
        const int status =
            MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses_.data());
        if (status == MPI_SUCCESS) return done != 0;
        broken_ = true;
        int kind = status;
        static_cast<void>(MPI_Error_class(status, &kind));
        for (std::size_t i = 0; kind == MPI_ERR_IN_STATUS && i < requests.size(); ++i) {
            const int code = statuses_[i].MPI_ERROR;
            if (code != MPI_SUCCESS && code != MPI_ERR_PENDING) throw_error(mpi_error("MPI_Testall", code));
        }
        throw_error(mpi_error("MPI_Testall", status));
    }
    [[nodiscard]] std::string missing(const call& it) const {
        const auto has_not_come = [&](int rank) {
            const MPI_Request told = it.heads[index(rank)];
            int done = 1;
            if (told != MPI_REQUEST_NULL) {
                static_cast<void>(MPI_Request_get_status(told, &done, MPI_STATUS_IGNORE));
            }
            return done == 0;
        };
        const std::string which = text_of_call(it.mine.kind, it.channel, it.mine.number);
        std::string text = text_of_missing(size_, has_not_come, which);
        return text.empty() ? "all ranks have made " + which + ", but not all of its bytes have come" : text;
    }

    [[nodiscard]] bool is_open(const request& started) const {
        return started.call != 0 && started.call <= calls_.size() &&
               calls_[started.call - 1]->started == started.number && calls_[started.call - 1]->open;
    }
    /// Returns the call of a request that is under way.
    ///
    /// \throws state_error  it has ended, or is another communicator's
    [[nodiscard]] call& require_open(std::string_view function, const request& started) const {
        if (!is_open(started)) {
            throw_joined<state_error>(
                {function, ": the request is of a call that has ended, or of another communicator"});
        }
        return *calls_[started.call - 1];
    }
    /// A call that is not under way.
    call& free_call() {
        if (!free_.empty()) {
            call& it = *calls_[free_.back()];
            free_.pop_back();
            return it;
        }
        free_.reserve(calls_.size() + 1);
        auto made = std::make_unique<call>();
        made->index = calls_.size();
        made->theirs.resize(index(size_));
        made->heads.assign(index(size_), MPI_REQUEST_NULL);
        calls_.push_back(std::move(made));
        return *calls_.back();
    }

    std::string_view name_;
    MPI_Comm communicator_ = MPI_COMM_NULL;
    std::chrono::nanoseconds timeout_;
    std::size_t message_;
    int rank_ = 0;
    int size_ = 1;
    int channels_ = 0;
    std::vector<std::uint64_t> numbers_ = std::vector<std::uint64_t>(orders_of(0));  // of the next calls
    std::vector<std::unique_ptr<call>> calls_;
    std::vector<std::size_t> free_;  // calls that are not under way
    std::vector<call*> uncompared_;  // in the order in which they were started
    std::vector<bool> blocked_;      // orders whose next call cannot be compared yet
    std::vector<MPI_Status> statuses_;
    std::uint64_t started_ = 0;
    bool broken_ = false;  // a call has not ended as it should
};

}  // namespace detail

}  // namespace mp
