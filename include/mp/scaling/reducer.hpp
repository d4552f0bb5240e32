// SPDX-License-Identifier: MIT
/// \file
/// Agreement among ranks that train one model: what any of them found in its gradients, all of them act on.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

namespace mp {

/// Combines numbers of all ranks of a data-parallel run: every rank calls the same functions in the same
/// order with as many values, and afterwards all of them hold the same results, in place. Ranks without
/// gradients take part like any other, with zeros; so it does not matter that they have none.
///
///     struct my_reducer {
///         void max(std::span<std::uint64_t> values);   // the largest of all ranks, for each place
///         void sum(std::span<std::uint64_t> values);   // the sum over all ranks, for each place
///     };
///
/// For MPI see interop/mpi.hpp, for NCCL interop/nccl.hpp.
template <class Reducer>
concept rank_reducer = requires(Reducer& reducer, std::span<std::uint64_t> values) {
    reducer.max(values);
    reducer.sum(values);
};

/// The reducer of a run with one rank: leaves the values as they are.
struct single_rank {
    constexpr void max(std::span<std::uint64_t>) const noexcept {}
    constexpr void sum(std::span<std::uint64_t>) const noexcept {}
};

namespace detail {

/// A reducer of any type, by reference; empty for a run with one rank.
class reducer_reference {
public:
    reducer_reference() = default;
    template <rank_reducer Reducer>
    explicit reducer_reference(Reducer& reducer)
        : reducer_(&reducer),
          max_([](void* it, std::span<std::uint64_t> values) { static_cast<Reducer*>(it)->max(values); }),
          sum_([](void* it, std::span<std::uint64_t> values) { static_cast<Reducer*>(it)->sum(values); }) {}

    explicit operator bool() const noexcept { return reducer_ != nullptr; }
    void max(std::span<std::uint64_t> values) const { max_(reducer_, values); }
    void sum(std::span<std::uint64_t> values) const { sum_(reducer_, values); }

private:
    void* reducer_ = nullptr;
    void (*max_)(void*, std::span<std::uint64_t>) = nullptr;
    void (*sum_)(void*, std::span<std::uint64_t>) = nullptr;
};

}  // namespace detail
}  // namespace mp
