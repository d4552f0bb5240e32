// SPDX-License-Identifier: MIT
/// \file
/// Agreement among ranks that train one model: what any of them found in its gradients, all of them act on.
#pragma once

#include <mp/base/durations.hpp>
#include <mp/config.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#if MP_CORE_BODIES
#include <mp/error.hpp>

#include <thread>
#endif

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Combines numbers of all ranks of a data-parallel run: every rank calls the same functions in the same
/// order with as many values, and afterwards all of them hold the same results, in place. Ranks without
/// gradients take part like any other, with zeros; so it does not matter that they have none.
///
///     struct my_reducer {
///         void max(std::span<std::uint64_t> values);   // the largest of all ranks, for each place
///         void sum(std::span<std::uint64_t> values);   // the sum over all ranks, for each place
///     };
///
/// A function that throws leaves the iteration of a scaler not agreed, see loss_scaler::set_reducer. It
/// should not wait for ever for a rank that does not come, but throw mp::rank_timeout.
///
/// For MPI see interop/mpi.hpp, for NCCL interop/nccl.hpp.
template <class Reducer>
concept rank_reducer = requires(Reducer& reducer, std::span<std::uint64_t> values) {
    (reducer.max)(values);
    reducer.sum(values);
};

/// How long the library's reducers wait for all ranks to make a call, unless they are told otherwise: as
/// long as PyTorch does with NCCL. Ranks that are at work meanwhile, on a checkpoint or on data of unequal
/// size, need more if that takes longer.
inline constexpr std::chrono::nanoseconds default_rank_timeout = std::chrono::minutes(10);

}}  // namespace mp

namespace mp {

/// The reducer, and communicator (see <mp/train/parallel/communicator.hpp>), of a run with one rank: leaves the
/// values as they are.
class single_rank {
public:
    struct request {};

    constexpr void(max)(std::span<std::uint64_t>) const noexcept {}
    constexpr void sum(std::span<std::uint64_t>) const noexcept {}

    [[nodiscard]] constexpr int rank() const noexcept { return 0; }
    [[nodiscard]] constexpr int size() const noexcept { return 1; }
    [[nodiscard]] constexpr std::chrono::nanoseconds timeout() const noexcept { return default_rank_timeout; }
    [[nodiscard]] constexpr request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                                                   std::span<const std::size_t> /*cuts*/) const noexcept {
        std::copy(from.begin(), from.end(), to.begin());
        return {};
    }
    [[nodiscard]] constexpr request start_gather(std::span<std::byte> /*all*/,
                                                 std::span<const std::size_t> /*cuts*/) const noexcept {
        return {};
    }
    constexpr bool finished(request& /*call*/) const noexcept { return true; }
    constexpr void wait(request& /*call*/) const noexcept {}
    constexpr void broadcast(std::span<std::byte> /*bytes*/, int /*root*/) const noexcept {}
};

}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Throws argument_error unless the time to wait is positive.
MP_CORE_FUNCTION void require_timeout(std::string_view function, std::chrono::nanoseconds timeout);

/// Calls done(caller) until it says so, and throws rank_timeout in the name of `function` if that takes longer than
/// `timeout`; missing(caller) returns the ranks and the call that are missing, if known. Ranks mostly come within
/// microseconds, and messages of many pieces advance one step for each poll: so the waiting thread sleeps late, and for no
/// more than a thousandth of the time that it has waited.
MP_CORE_FUNCTION void wait_until_done(std::string_view function, std::chrono::nanoseconds timeout,
                                      std::string_view advice, void* caller, bool (*done)(void*),
                                      std::string (*missing)(void*));

/// A reducer of any type, by reference; none for a run with one rank.
struct reducer_functions {
    void* object = nullptr;
    void (*max_function)(void*, std::span<std::uint64_t>) = nullptr;
    void (*sum_function)(void*, std::span<std::uint64_t>) = nullptr;

    MP_ALWAYS_INLINE explicit operator bool() const noexcept { return object != nullptr; }
    MP_ALWAYS_INLINE void(max)(std::span<std::uint64_t> values) const { max_function(object, values); }
    MP_ALWAYS_INLINE void sum(std::span<std::uint64_t> values) const { sum_function(object, values); }
};

#if MP_CORE_BODIES
MP_CORE_FUNCTION void require_timeout(std::string_view function, std::chrono::nanoseconds timeout) {
    if (timeout.count() <= 0) {
        throw_argument(function, "timeout", timeout.count(), "must be a positive number of nanoseconds");
    }
}

MP_CORE_FUNCTION void wait_until_done(std::string_view function, std::chrono::nanoseconds timeout,
                                      std::string_view advice, void* caller, bool (*done)(void*),
                                      std::string (*missing)(void*)) {
    using clock = std::chrono::steady_clock;
    const clock::time_point start = clock::now();
    while (!done(caller)) {
        const std::chrono::nanoseconds waited = clock::now() - start;
        if (waited > timeout) {
            const double seconds = std::chrono::duration<double>(waited).count();
            const std::string who = missing(caller);
            throw_joined<rank_timeout>({function, ": after ", error_text(seconds),
                                        " seconds not all ranks have made this call", who.empty() ? "" : ": ",
                                        who, "; ", advice});
        }
        if (waited < std::chrono::milliseconds(20)) {
            std::this_thread::yield();
        } else {
            std::this_thread::sleep_for(
                (std::min<std::chrono::nanoseconds>)(waited / 1024, std::chrono::milliseconds(5)));
        }
    }
}
#endif

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// wait_until_done() for done() and missing().
template <class Done, class Missing>
void wait_for_ranks(std::string_view function, std::chrono::nanoseconds timeout, std::string_view advice,
                    Done done, Missing missing) {
    struct calls {
        Done& done;
        Missing& missing;
    } caller{done, missing};
    wait_until_done(
        function, timeout, advice, &caller, [](void* it) -> bool { return static_cast<calls*>(it)->done(); },
        [](void* it) -> std::string { return static_cast<calls*>(it)->missing(); });
}

template <class Done>
void wait_for_ranks(std::string_view function, std::chrono::nanoseconds timeout, std::string_view advice,
                    Done done) {
    wait_for_ranks(function, timeout, advice, done, [] { return std::string(); });
}

/// Finds the functions of a reducer.
class reducer_reference : public reducer_functions {
public:
    reducer_reference() = default;
    template <rank_reducer Reducer>
    explicit reducer_reference(Reducer& reducer)
        : reducer_functions{
              &reducer,
              [](void* it, std::span<std::uint64_t> values) { (static_cast<Reducer*>(it)->max)(values); },
              [](void* it, std::span<std::uint64_t> values) { static_cast<Reducer*>(it)->sum(values); }} {}
};

}}  // namespace mp::detail
