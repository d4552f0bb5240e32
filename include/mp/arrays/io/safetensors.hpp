// SPDX-License-Identifier: MIT
/// \file
/// Files of the safetensors format of Hugging Face: weights of other programs, mapped into memory, and files
/// that are written a piece at a time, for models that are larger than memory.
///
/// mp::tensor_file reads them, mp::save_safetensors (in <mp/training.hpp>) writes what is in memory at once.
///
///     const mp::tensor_file model("model.safetensors");
///     const auto w = model.matrix<mp::bfloat16>("fc.weight");          // where it lies in the file
///     const auto q = mp::quantize<mp::mxfp4>(mp::cpu{}, w);
///     std::vector<mp::tensor_description> tensors;
///     mp::describe_block_scaled<mp::mxfp4>("fc.weight", model.at("fc.weight").shape, tensors);
///     mp::safetensors_writer out("small.safetensors", tensors);
///     out.write_block_scaled("fc.weight", q);
///     out.commit();
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/arrays/io/file_replacement.hpp>
#include <mp/arrays/io/tensor_file.hpp>
#include <mp/arrays/io/tensor_header.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// An array that a file is to have.
struct tensor_description {
    std::string name;
    std::string dtype;  ///< as safetensors names it: "F32", "BF16", "F8_E4M3", "F4" ...
    std::vector<std::size_t> shape;

    /// Bytes that it takes; the largest number if it is no whole number of bytes, or none that can be addressed.
    [[nodiscard]] std::size_t bytes() const noexcept {
        constexpr std::size_t none = (std::numeric_limits<std::size_t>::max)();
        const std::size_t width = detail::dtype_bits(dtype);
        const std::optional<std::size_t> count = detail::element_count(shape);
        if (width == 0 || !count || *count > none / 64 || *count * width % 8 != 0) return none;
        return *count * width / 8;
    }
};

/// The dtype of numbers of a type, a byte or more each: "F16" for half. Types that safetensors has not are
/// unsigned integers of their size, as in mp::save_safetensors.
template <detail::tensor_element Value>
[[nodiscard]] constexpr std::string_view safetensors_dtype() {
    return detail::dtype_of<Value>();
}
/// The dtype of numbers of fewer than 8 bits that lie as in packed_array: "F4", "F6_E2M3", "F6_E3M2".
template <packable Value>
[[nodiscard]] constexpr std::string_view safetensors_packed_dtype() {
    static_assert(!detail::packed_dtype_of<Value>().empty(), "mp: safetensors has no such type");
    return detail::packed_dtype_of<Value>();
}

/// Writes a safetensors file whose arrays come in pieces and in any order. It takes the place of an old one
/// when it is complete.
class safetensors_writer {
public:
    /// \throws file_error      the file cannot be written
    /// \throws argument_error  a name is there twice or not valid UTF-8, a key of the metadata is there twice, a
    ///                         dtype is not known, an array is no whole number of bytes, or they are too large
    explicit safetensors_writer(const std::string& path, std::span<const tensor_description> tensors,
                                const std::vector<std::pair<std::string, std::string>>& metadata = {})
        : header_(make_header(tensors, metadata)), file_(path) {
        file_.write(header_);
        place_ = header_.size();
    }

    /// The next bytes of an array, in the order of the file (little-endian).
    ///
    /// \throws argument_error  there is no such array, or it has fewer bytes
    /// \throws state_error     after commit()
    /// \throws file_error      the disk is full, for example
    void write(std::string_view name, std::span<const std::byte> bytes) {
        require_open("mp::safetensors_writer::write");
        const auto found = progress_.find(name);
        if (found == progress_.end()) {
            detail::throw_argument("mp::safetensors_writer::write", "name", name, "must be that of an array");
        }
        progress& it = found->second;
        if (bytes.size() > it.end - it.next) {
            detail::throw_argument("mp::safetensors_writer::write", "bytes.size()", bytes.size(),
                                   "must be at most " + detail::error_text(it.end - it.next) +
                                       ", which is what '" + std::string(name) + "' has left");
        }
        if (it.next != place_) file_.seek(it.next);
        file_.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        it.next += bytes.size();
        place_ = it.next;
    }
    /// The next elements of an array, a range of numbers or one number of the type that it has.
    template <class Values>
        requires requires(const Values& values) { detail::elements_of(values); }
    void write_elements(std::string_view name, const Values& values) {
        const auto from = detail::elements_of(values);
        using value = std::remove_const_t<typename decltype(from)::element_type>;
        const auto found = progress_.find(name);
        if (found != progress_.end() && found->second.dtype != detail::dtype_of<value>()) {
            detail::throw_argument("mp::safetensors_writer::write_elements", "values",
                                   detail::dtype_of<value>(),
                                   "must be what '" + std::string(name) + "' has, " + found->second.dtype);
        }
        const detail::file_entry entry{{}, {}, {}, from.data(), sizeof(value), from.size()};
        detail::for_file_bytes(entry, [&](std::string_view bytes) {
            write(name, {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
        });
    }
    /// A block-scaled matrix, or the next rows of one, into the arrays of describe_block_scaled.
    template <block_element Element, int Block, reduced Scale>
    void write_block_scaled(const std::string& name, const block_scaled<Element, Block, Scale>& rows) {
        write(name, rows.bytes());
        write(name + "_scale", std::as_bytes(rows.scales()));
        if constexpr (block_scaled<Element, Block, Scale>::has_tensor_scale) {
            const auto found = progress_.find(name + "_scale_2");
            const bool first = found != progress_.end() && found->second.next != found->second.end;
            if (first) write_elements(name + "_scale_2", rows.tensor_scale());
        }
    }

    /// Gives the file its name.
    ///
    /// \throws state_error  an array is not complete, or commit() was called before
    /// \throws file_error   it does not get there; an old file is as before
    void commit() {
        require_open("mp::safetensors_writer::commit");
        for (const auto& [name, it] : progress_) {
            if (it.next != it.end) {
                detail::throw_joined<state_error>({"mp::safetensors_writer::commit: '", name, "' lacks ",
                                                   detail::error_text(it.end - it.next), " bytes"});
            }
        }
        committed_ = true;
        file_.commit();
    }

private:
    void require_open(std::string_view function) const {
        if (!committed_) return;
        detail::throw_joined<state_error>({function, ": commit() has been called"});
    }

    struct progress {
        std::string dtype;
        std::uint64_t next;
        std::uint64_t end;
    };

    std::string make_header(std::span<const tensor_description> tensors,
                            const std::vector<std::pair<std::string, std::string>>& metadata) {
        // Larger elements first, so that all are aligned in a file that is mapped.
        std::vector<const tensor_description*> order;
        for (const tensor_description& it : tensors) order.push_back(&it);
        const auto bits = [](const tensor_description* it) { return detail::dtype_bits(it->dtype); };
        std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return bits(a) > bits(b); });
        constexpr std::string_view function = "mp::safetensors_writer";
        std::vector<detail::file_entry> entries;
        for (const tensor_description* it : order) {
            const std::size_t width = bits(it);
            if (width == 0)
                detail::throw_argument(function, "dtype", it->dtype, "must be one of safetensors");
            const std::size_t bytes = it->bytes();
            if (bytes == (std::numeric_limits<std::size_t>::max)()) {
                detail::throw_argument(function, "shape", it->name,
                                       "must be an array of a whole number of bytes that can be addressed");
            }
            entries.push_back({it->name, it->dtype, it->shape, nullptr, 1, bytes});
        }
        std::string header = detail::tensor_header(entries, metadata, function);
        std::uint64_t place = header.size();
        for (const detail::file_entry& it : entries) {
            const std::uint64_t end = place + it.count;
            if (it.name == "__metadata__" ||
                !progress_.emplace(std::string(it.name), progress{std::string(it.dtype), place, end})
                     .second) {
                detail::throw_argument(function, "name", it.name,
                                       "must be another one: there is one of this name");
            }
            place = end;
        }
        return header;
    }

    std::map<std::string, progress, std::less<>> progress_;
    std::string header_;
    detail::file_replacement file_;
    std::uint64_t place_ = 0;
    bool committed_ = false;
};

/// The arrays that a block-scaled matrix becomes in a file, behind those of `to`: `name` has the codes in the
/// given shape ("F4", "F6_E2M3", "F8_E4M3" ..., packed), `name_scale` a scale for each block, "F8_E8M0" or
/// "F8_E4M3", and formats with a tensor scale have `name_scale_2`, a float. Blocks go along the last dimension.
///
/// \throws argument_error  the last dimension is not a multiple of the block
template <class BlockScaled>
void describe_block_scaled(const std::string& name, std::span<const std::size_t> shape,
                           std::vector<tensor_description>& to) {
    using element = typename BlockScaled::element_type;
    constexpr auto block = std::size_t{BlockScaled::block_size};
    const std::size_t last = shape.empty() ? 1 : shape.back();
    if (last % block != 0) {
        detail::throw_argument("mp::describe_block_scaled", "shape.back()", last,
                               "must be a multiple of " + detail::error_text(block));
    }
    std::string_view dtype = "I8";
    if constexpr (packable<element>) {
        dtype = detail::packed_dtype_of<element>();
    } else if constexpr (reduced<element>) {
        dtype = detail::dtype_of<element>();
    }
    std::vector<std::size_t> blocks(shape.begin(), shape.end());
    blocks.back() /= block;
    to.push_back({name, std::string(dtype), {shape.begin(), shape.end()}});
    to.push_back({name + "_scale", std::string(detail::dtype_of<typename BlockScaled::scale_type>()),
                  std::move(blocks)});
    if constexpr (BlockScaled::has_tensor_scale) to.push_back({name + "_scale_2", "F32", {}});
}

/// Reads what write_block_scaled has written, into memory.
///
/// \throws file_error  there is none, or it is of another format
template <class BlockScaled>
[[nodiscard]] BlockScaled read_block_scaled(const tensor_file& file, const std::string& name) {
    const tensor_file::tensor& codes = file.at(name);
    std::vector<tensor_description> expected;
    if (codes.shape.empty() || codes.shape.back() % BlockScaled::block_size != 0) {
        detail::throw_file(file.path(), detail::quoted_excerpt(name) + " has no whole blocks");
    }
    describe_block_scaled<BlockScaled>(name, codes.shape, expected);
    for (const tensor_description& it : expected) {
        const tensor_file::tensor& found = file.at(it.name);
        if (found.dtype != it.dtype || found.shape != it.shape) {
            detail::throw_file(file.path(), detail::quoted_excerpt(it.name) + " has elements of type " +
                                                found.dtype + ", or another shape, than the " + it.dtype +
                                                " of the format");
        }
    }
    const detail::row_shape shape = detail::as_rows(file.path(), detail::quoted_excerpt(name), codes.shape);
    BlockScaled result(shape.rows, shape.columns);
    std::copy(codes.bytes.begin(), codes.bytes.end(), result.bytes().begin());
    file.read(name + "_scale", result.scales());
    if constexpr (BlockScaled::has_tensor_scale) {
        float scale = 1;
        file.read(name + "_scale_2", scale);
        result.set_tensor_scale(scale);
    }
    return result;
}

}}  // namespace mp
