// SPDX-License-Identifier: MIT
/// \file
/// Checkpoints of runs on many ranks: the file that one rank would write.
#pragma once

#include <mp/arrays/io/checksum.hpp>
#include <mp/train/parallel/agreement.hpp>
#include <mp/train/parallel/communicator.hpp>
#include <mp/train/parallel/rank_file.hpp>
#include <mp/train/training/checkpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}}  // namespace mp
