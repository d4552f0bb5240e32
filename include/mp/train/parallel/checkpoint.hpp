// SPDX-License-Identifier: MIT
/// \file
/// Checkpoints of runs on many ranks: the file that one rank would write. And replicas of a model: that they begin with
/// the same weights, and that they stay the same.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/reducer.hpp>
#include <mp/train/parallel/agreement.hpp>
#include <mp/train/parallel/communicator.hpp>
#include <mp/train/parallel/rank_file.hpp>
#include <mp/train/training/checkpoint.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// As mp::save_checkpoint, by all ranks together: what mp::sharded_optimizer has shared among them is written
/// by whom it belongs to, everything else by rank 0. The file is, to the byte, the one that a single rank
/// would write that had it all: it is loaded on any number of ranks, and by programs without ranks. Collective;
/// `path` is in a folder that all ranks see.
///
///     mp::save_checkpoint(ranks, "run.ckpt", everything);
///
/// \throws as mp::save_checkpoint, and on all ranks if on one, file_error on those that did nothing wrong
template <communicator Ranks, class Everything>
void save_checkpoint(Ranks& ranks, const std::string& path, Everything&& everything) {
    detail::state_writer writer(true);
    std::string header;
    detail::together(ranks, path, [&] {
        everything(writer);
        header = writer.finish(true);
    });
    const std::uint64_t same[] = {header.size(), detail::crc64(header)};
    detail::require_same_on_ranks(
        "mp::save_checkpoint", same, detail::reducer_reference(ranks), [](std::size_t i) {
            return std::string(i == 0 ? "the length" : "the checksum") + " of what is to be saved";
        });
    detail::rank_file file(ranks, path);
    detail::together(ranks, path, [&] {
        std::uint64_t at = header.size();
        for (const detail::file_entry& it : writer.entries()) {
            const bool mine = it.shared || ranks.rank() == 0;
            file.begin(at + it.first * it.element_size);
            if (mine) detail::for_file_bytes(it, [&](std::string_view bytes) { file.write(bytes); });
            at += it.count * it.element_size;
        }
        file.close();
    });
    const std::vector<detail::file_stretch> stretches = file.all_stretches();
    detail::together(ranks, path, [&] {
        if (ranks.rank() != 0) return;
        detail::state_writer::set_checksum(header, detail::checksum_of_file(path, header, stretches));
        file.begin(0);
        file.write(header);
        file.give_name();
    });
}

/// As mp::load_checkpoint, on all ranks or on none: each reads what it holds. Collective.
///
/// \throws as mp::load_checkpoint, and on all ranks if on one, file_error on those that could have loaded it.
///         Nothing has changed then
template <communicator Ranks, class Everything>
void load_checkpoint(Ranks& ranks, const std::string& path, Everything&& everything,
                     file_access access = file_access::map) {
    std::optional<tensor_file> file;
    std::optional<detail::state_reader> reader;
    detail::together(ranks, path, [&] {
        file.emplace(path, access);
        detail::require_checkpoint(*file, file->all());
        reader.emplace(*file);
        everything(*reader);
        reader->require_all();
    });
    reader->load(everything);
}

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
