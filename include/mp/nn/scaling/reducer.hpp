// SPDX-License-Identifier: MIT
/// \file
/// Agreement among ranks that train one model: what any of them found in its gradients, all of them act on, after a
/// comparison of their loss scalers.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/durations.hpp>
#include <mp/config.hpp>
#include <mp/nn/scaling/policy.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/io/checksum.hpp>
#include <mp/error.hpp>

#include <array>
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

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// What a scaler has that those of other ranks must have as well: numbers with names. Each is kept as a number of 64 bits
/// whose order is that of its values, so that the largest and the smallest of all ranks are values again.
class compared_values {
public:
    enum class type : unsigned char { floating, narrow_floating, signed_integer, unsigned_integer, truth };

    compared_values();
    ~compared_values();
    compared_values(const compared_values&) = delete;
    compared_values& operator=(const compared_values&) = delete;

    /// Adds a parameter or a counter.
    void add(std::string_view section, std::string_view name, type kind, std::uint64_t key);

    /// Throws rank_error in the name of `function`, on all ranks, unless all ranks have these values and this policy,
    /// whose name may be empty.
    void require_same(std::string_view function, bool enabled, std::string_view policy,
                      const reducer_functions& reducer) const;

private:
    std::vector<std::string> names_;
    std::vector<type> kinds_;
    std::vector<std::uint64_t> keys_;
};

/// The smallest and the largest of all ranks, in pairs: the complements change places.
MP_CORE_FUNCTION std::vector<std::uint64_t> ranges_of_ranks(std::span<const std::uint64_t> values,
                                                            const reducer_functions& reducer);

#if MP_CORE_BODIES
MP_CORE_FUNCTION compared_values::compared_values() = default;
MP_CORE_FUNCTION compared_values::~compared_values() = default;

MP_CORE_FUNCTION void compared_values::add(std::string_view section, std::string_view name, type kind,
                                           std::uint64_t key) {
    names_.push_back(std::string(section).append(name));
    kinds_.push_back(kind);
    keys_.push_back(key);
}

MP_CORE_FUNCTION std::vector<std::uint64_t> ranges_of_ranks(std::span<const std::uint64_t> values,
                                                            const reducer_functions& reducer) {
    std::vector<std::uint64_t> both;
    for (const std::uint64_t value : values) {
        both.push_back(~value);
        both.push_back(value);
    }
    (reducer.max)(both);
    for (std::size_t i = 0; i < both.size(); i += 2) both[i] = ~both[i];
    return both;
}

/// Returns the value that a key stands for.
inline std::string text_of_key(compared_values::type kind, std::uint64_t key) {
    using type = compared_values::type;
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    if (kind == type::truth) return error_text(key != 0);
    if (kind == type::unsigned_integer) return error_text(key);
    if (kind == type::signed_integer) return error_text(static_cast<std::int64_t>(key ^ sign));
    const auto value = bit_cast<double>((key & sign) != 0 ? key ^ sign : ~key);
    return kind == type::floating ? error_text(value) : error_text(static_cast<float>(value));
}

MP_CORE_FUNCTION void compared_values::require_same(std::string_view function, bool enabled,
                                                    std::string_view policy,
                                                    const reducer_functions& reducer) const {
    std::string names(policy);
    for (const std::string& name : names_) names.append(" ").append(name);

    // The names first: with other ones the ranks would not even have as many values to compare.
    const std::array<std::uint64_t, 2> kinds{enabled ? 1U : 0U, crc64(names)};
    const std::vector<std::uint64_t> of_kinds = ranges_of_ranks(kinds, reducer);
    if (of_kinds[0] != of_kinds[1]) {
        throw_joined<rank_error>({function, ": the scaler is ",
                                  enabled ? "enabled on this rank, and disabled on others"
                                          : "disabled on this rank, and enabled on others"});
    }
    if (of_kinds[2] != of_kinds[3]) {
        throw_joined<rank_error>({function, ": the ranks have different scale policies; on this rank it is ",
                                  policy.empty() ? "one without a name" : error_text(policy)});
    }

    const std::vector<std::uint64_t> of_values = ranges_of_ranks(keys_, reducer);
    std::string differences;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
        const std::uint64_t least = of_values[2 * i];
        const std::uint64_t most = of_values[2 * i + 1];
        if (least == most) continue;
        append_text(differences,
                    {differences.empty() ? ": the scalers of the ranks differ: " : "; ", names_[i], " is ",
                     text_of_key(kinds_[i], keys_[i]), " on this rank, and from ",
                     text_of_key(kinds_[i], least), " to ", text_of_key(kinds_[i], most), " on all"});
    }
    if (!differences.empty()) throw_joined<rank_error>({function, differences});
}
#endif

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Member>
void add_compared(compared_values& to, std::string_view section, std::string_view name, Member member) {
    using type = compared_values::type;
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    if constexpr (std::is_enum_v<Member>) {
        add_compared(to, section, name, static_cast<std::int64_t>(member));
    } else if constexpr (std::floating_point<Member>) {
        const auto bits = bit_cast<std::uint64_t>(static_cast<double>(member));
        to.add(section, name, std::is_same_v<Member, float> ? type::narrow_floating : type::floating,
               (bits & sign) != 0 ? ~bits : bits | sign);
    } else if constexpr (std::is_signed_v<Member>) {
        to.add(section, name, type::signed_integer,
               static_cast<std::uint64_t>(static_cast<std::int64_t>(member)) ^ sign);
    } else {
        to.add(section, name, std::is_same_v<Member, bool> ? type::truth : type::unsigned_integer, member);
    }
}

/// Throws rank_error in the name of `function`, on all ranks, unless scalers with this policy and state are what all
/// ranks have: everything that a savable policy names, and of others the scale. All of them have to call it.
template <class Policy>
void require_same_scalers(std::string_view function, bool enabled, const Policy& policy,
                          const scale_state_of<Policy>& state, const reducer_functions& reducer) {
    compared_values values;
    std::string_view policy_name;
    if constexpr (savable_policy<Policy>) {
        policy_name = Policy::name;
        Policy::visit(policy, [&](std::string_view name, const auto& member) {
            add_compared(values, "policy.", name, member);
        });
        rules_type<Policy>::visit(state, [&](std::string_view name, const auto& member) {
            add_compared(values, "state.", name, member);
        });
    } else {
        add_compared(values, "state.", "scale", state.scale);
    }
    values.require_same(function, enabled, policy_name, reducer);
}

}}  // namespace mp::detail
