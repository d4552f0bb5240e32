// SPDX-License-Identifier: MIT
/// \file
/// Replicas of a model: that they begin with the same weights, and that they stay the same.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/train/parallel/agreement.hpp>
#include <mp/train/parallel/communicator.hpp>
#include <mp/train/training/checkpoint.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Weight>
std::string_view bytes_of_weights(std::span<const Weight> weights) {
    return {reinterpret_cast<const char*>(weights.data()), weights.size_bytes()};
}

template <class Weight, class Gradient, class Function>
void for_weights(const parameter_store<Weight, Gradient>& store, Function f) {
    f(store.weights());
}
template <class Weight, class Gradient, class Function>
void for_weights(const std::vector<parameter<Weight, Gradient>>& parameters, Function f) {
    for (const auto& it : parameters) f(std::span<const Weight>(it.weights));
}

/// Calls f(weights, version) on what a broadcast replaces.
template <class Weight, class Gradient, class Function>
void for_replaced_weights(parameter_store<Weight, Gradient>& store, Function f) {
    f(store.replace_weights());
}
template <class Weight, class Gradient, class Function>
void for_replaced_weights(std::vector<parameter<Weight, Gradient>>& parameters, Function f) {
    for (const auto& it : parameters) {
        it.version.replaced();
        f(it.weights);
    }
}

/// A checksum of the number, the type and the bits of weights.
template <class Parameters>
std::uint64_t digest_of_weights(const Parameters& parameters) {
    crc64_stream digest;
    for_weights(parameters, [&]<class Weight>(std::span<const Weight> weights) {
        digest.add(error_text(weights.size()) + " " + std::string(dtype_of<Weight>()) + " ");
        digest.add(bytes_of_weights(weights));
    });
    return digest.value();
}

template <class... Parameters>
void require_same_digests(std::string_view function, const reducer_reference& reducer,
                          const Parameters&... parameters) {
    const std::vector<std::uint64_t> digests{digest_of_weights(parameters)...};
    require_same_on_ranks(function, digests, reducer, [](std::size_t i) {
        return "the checksum of the weights of argument " + std::to_string(i + 2);
    });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Gives all ranks the weights of rank 0: before the first step, and after it has loaded them. Masters that
/// optimizers keep of them become these weights, on all ranks. Collective.
///
/// \param parameters  mp::parameter_store objects, or vectors of mp::parameter
/// \throws rank_error    the ranks have other sizes or types
/// \throws rank_timeout  a rank does not come
template <communicator Ranks, class... Parameters>
void broadcast_weights(Ranks& ranks, Parameters&... parameters) {
    const auto one = [&](auto& of) {
        detail::for_replaced_weights(of, [&]<class Weight>(std::span<Weight> weights) {
            const std::uint64_t shape[] = {weights.size(), detail::crc64(detail::dtype_of<Weight>())};
            detail::require_same_on_ranks(
                "mp::broadcast_weights", shape, detail::reducer_reference(ranks), [](std::size_t i) {
                    return std::string(i == 0 ? "the number" : "the checksum of the type") + " of weights";
                });
            ranks.broadcast(std::as_writable_bytes(weights), 0);
        });
    };
    (one(parameters), ...);
}

/// Throws unless all ranks have the same weights, to the bit: a check to make now and then, since replicas
/// that have drifted apart go on without an error. Reads all weights once. Collective.
///
/// \throws rank_error    they have not, on all ranks
/// \throws rank_timeout  a rank does not come
template <communicator Ranks, class... Parameters>
void require_same_weights(Ranks& ranks, const Parameters&... parameters) {
    detail::require_same_digests("mp::require_same_weights", detail::reducer_reference(ranks), parameters...);
}

/// Throws unless all ranks have the same state, to the bit: policies and scales of loss scalers, options and rates
/// of optimizers, their moments, weights, counts; what the run goes on from. `everything` is that of
/// mp::save_checkpoint, and what ranks share is left out. To be called at the start, and after loading. Collective.
///
///     mp::require_same_state(ranks, everything);
///
/// \throws rank_error    something differs, on all ranks; the message says what
/// \throws rank_timeout  a rank does not come
template <communicator Ranks, class Everything>
void require_same_state(Ranks& ranks, Everything&& everything) {
    constexpr std::string_view function = "mp::require_same_state";
    detail::state_writer writer(true);
    everything(writer);
    const detail::reducer_reference reducer(ranks);
    const std::uint64_t names[] = {detail::crc64(writer.finish(false))};
    detail::require_same_on_ranks(function, names, reducer, [](std::size_t) {
        return std::string("the checksum of the names and sizes of what there is");
    });
    std::vector<std::uint64_t> digests;
    for (const detail::file_entry& it : writer.entries()) {
        detail::crc64_stream digest;
        if (!it.shared) detail::for_file_bytes(it, [&](std::string_view bytes) { digest.add(bytes); });
        digests.push_back(digest.value());
    }
    detail::require_same_on_ranks(function, digests, reducer, [&](std::size_t i) {
        return "the checksum of '" + std::string(writer.entries()[i].name) + "'";
    });
}

}}  // namespace mp
