// SPDX-License-Identifier: MIT
/// \file
/// Named arrays in a file of the safetensors format, mapped into memory.
#pragma once

#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/convert/packed_array.hpp>
#include <mp/arrays/io/stored_elements.hpp>
#include <mp/arrays/io/tensor_header.hpp>
#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

[[noreturn]] inline void throw_count(const std::string& path, std::string_view name, std::size_t found,
                                     std::size_t expected) {
    throw_file(path, quoted_excerpt(name) + " has " + error_text(found) + " elements, and " +
                         error_text(expected) + " were expected");
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A file of named arrays, mapped into memory as long as the object lives: weights in the safetensors format,
/// and checkpoints. Everything that the header says is checked before anything is believed.
///
///     const mp::tensor_file file("model.safetensors");
///     file.read("fc.weight", weights);                // a range of the type of the file, or a number
///     file.read_converted("fc.bias", bias);           // a range of another type
///
/// Threads may read it at once. Nobody may write into the file meanwhile, unless it is opened by file_access::read; to
/// replace it is fine.
class tensor_file {
public:
    /// One tensor of the file, where it lies.
    struct tensor {
        std::string dtype;  ///< "F32", "BF16", "F8_E4M3" ...
        std::vector<std::size_t> shape;
        std::span<const std::byte> bytes;  ///< little-endian; maybe not aligned
        std::size_t count;                 ///< of elements
    };

    /// \throws file_error  it cannot be read, or is not such a file
    explicit tensor_file(const std::string& path, file_access access = file_access::map)
        : path_(path), contents_(path, access) {
        read_header();
    }
    /// A file whose bytes are in memory, where they stay as long as this object; messages call it `name`.
    ///
    /// \throws file_error  it is not such a file
    tensor_file(const std::string& name, std::span<const std::byte> bytes) : path_(name), contents_(bytes) {
        read_header();
    }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// By name.
    [[nodiscard]] const std::map<std::string, tensor, std::less<>>& tensors() const noexcept {
        return tensors_;
    }
    [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const noexcept {
        return metadata_;
    }
    /// All arrays as they lie in the file, and the whole of it.
    [[nodiscard]] std::span<const std::byte> data() const noexcept { return data_; }
    [[nodiscard]] std::span<const std::byte> all() const noexcept { return contents_.bytes(); }

    /// \throws file_error  there is none of this name
    [[nodiscard]] const tensor& at(std::string_view name) const {
        const auto found = tensors_.find(name);
        if (found == tensors_.end()) detail::throw_file(path_, "there is no " + detail::quoted_excerpt(name));
        return found->second;
    }

    /// Returns an array in place, of the type that is in the file: nothing is copied, and pages of a mapped file are
    /// read when they are first used. The view is valid as long as the object.
    ///
    ///     const std::span<const mp::bfloat16> w = file.view<mp::bfloat16>("fc.weight");
    ///
    /// Files of other programs need not be aligned: an array that the type cannot be read from in place is copied by
    /// its first view, and the copy is kept. Threads may call this at the same time.
    ///
    /// \throws file_error  there is none, it is of another type, or in another order of bytes than the processor's
    template <detail::tensor_element Value>
    [[nodiscard]] std::span<const Value> view(std::string_view name) const {
        const tensor& found = require<Value>(name, at(name).count);
        return detail::elements_in_place<Value>(path_, detail::quoted_excerpt(name),
                                                aligned_bytes(found, alignof(Value)), found.count);
    }
    /// Returns view() as a matrix whose rows have the length of the last dimension.
    ///
    /// \throws file_error  as view(), or the shape is too large for a matrix, which one with a zero may be
    template <detail::tensor_element Value>
    [[nodiscard]] matrix_view<const Value> matrix(std::string_view name) const {
        return detail::as_matrix(path_, detail::quoted_excerpt(name), view<Value>(name), at(name).shape);
    }
    /// An array of "F6_E2M3", "F6_E3M2" or "F4" where it lies.
    ///
    /// \throws file_error  there is none, or it is of another type
    template <packable Value>
    [[nodiscard]] packed_span<const Value> packed_view(std::string_view name) const {
        const tensor& found = at(name);
        if (found.dtype != detail::packed_dtype_of<Value>()) {
            detail::throw_file(path_, detail::quoted_excerpt(name) + " has elements of type " + found.dtype +
                                          ", and " + std::string(detail::packed_dtype_of<Value>()) +
                                          " was expected");
        }
        return {found.bytes.data(), found.count};
    }

    /// Copies an array of this name, of the same type and number of elements. Formats of 6 and 4 bits have a
    /// byte each in arrays of theirs, and are packed where the file has "F6_E2M3", "F6_E3M2" and "F4":
    /// packed_view() is for those.
    ///
    /// \throws file_error  there is none, or it is another; `values` are then as before
    template <class To>
    void read(std::string_view name, To&& values) const {
        const auto to = detail::elements_of(values);
        using value = typename decltype(to)::element_type;
        const tensor& from = require<value>(name, to.size());
        detail::copy_little_endian(reinterpret_cast<std::byte*>(to.data()), from.bytes.data(), sizeof(value),
                                   to.size());
    }
    /// As read(), of the elements from `first` on of an array of `of` elements.
    ///
    /// \throws file_error  there is none, or it is another, or not so long
    template <class To>
    void read_share(std::string_view name, To&& values, std::size_t first, std::size_t of) const {
        const auto to = detail::elements_of(values);
        using value = typename decltype(to)::element_type;
        const tensor& from = require<value>(name, of);
        if (first > of || to.size() > of - first) detail::throw_count(path_, name, of, first + to.size());
        detail::copy_little_endian(reinterpret_cast<std::byte*>(to.data()),
                                   from.bytes.data() + first * sizeof(value), sizeof(value), to.size());
    }
    /// As read(), from an array of float, half, bfloat16, double or float8 elements, each rounded once.
    ///
    /// \throws file_error  there is none, its elements are of another type, or their number is another;
    ///                     `values` are then as before
    template <class To>
    void read_converted(std::string_view name, To&& values) const {
        const auto to = detail::elements_of(values);
        const tensor& from = at(name);
        if (from.count != to.size()) detail::throw_count(path_, name, from.count, to.size());
        const auto read_as = [&]<class Source>(std::type_identity<Source>) {
            if (from.dtype != detail::dtype_of<Source>()) return false;
            constexpr std::size_t block = 1024;
            Source unconverted[block];
            for (std::size_t first = 0; first < to.size(); first += block) {
                const std::size_t count = (std::min)(block, to.size() - first);
                detail::copy_little_endian(reinterpret_cast<std::byte*>(unconverted),
                                           from.bytes.data() + first * sizeof(Source), sizeof(Source), count);
                convert(cpu{}, std::span<const Source>(unconverted, count), to.subspan(first, count));
            }
            return true;
        };
        const bool known = read_as(std::type_identity<float>{}) || read_as(std::type_identity<half>{}) ||
                           read_as(std::type_identity<bfloat16>{}) || read_as(std::type_identity<double>{}) ||
                           read_as(std::type_identity<float8_e4m3fn>{}) ||
                           read_as(std::type_identity<float8_e5m2>{});
        if (!known) {
            detail::throw_file(path_, detail::quoted_excerpt(name) + " has elements of type " + from.dtype +
                                          ", which are not converted");
        }
    }
    /// Checks that read() of this type and size would succeed.
    template <detail::tensor_element Value>
    const tensor& require(std::string_view name, std::size_t count) const {
        const tensor& found = at(name);
        std::string_view format;
        if (const auto it = metadata_.find("format." + std::string(name)); it != metadata_.end())
            format = it->second;
        const std::string_view expected_format = detail::format_beyond_dtype<Value>();
        if (found.dtype != detail::dtype_of<Value>() || format != expected_format) {
            detail::throw_file(path_, detail::quoted_excerpt(name) + " has elements of type " +
                                          (format.empty() ? found.dtype : std::string(format)) + ", and " +
                                          std::string(expected_format.empty() ? detail::dtype_of<Value>()
                                                                              : expected_format) +
                                          " was expected");
        }
        if (found.count != count) detail::throw_count(path_, name, found.count, count);
        if constexpr (std::is_same_v<Value, bool>) {
            static_cast<void>(
                detail::elements_in_place<bool>(path_, detail::quoted_excerpt(name), found.bytes, count));
        }
        return found;
    }

private:
    /// Returns the bytes of an array, or a copy where they are not aligned.
    std::span<const std::byte> aligned_bytes(const tensor& it, std::size_t alignment) const {
        if (reinterpret_cast<std::uintptr_t>(it.bytes.data()) % alignment == 0) return it.bytes;
        const std::lock_guard lock(copying_);
        std::vector<std::byte>& copy = copies_[&it];
        if (copy.empty()) copy.assign(it.bytes.begin(), it.bytes.end());
        return copy;
    }
    void read_header() {
        detail::tensor_directory header = detail::read_tensor_directory(path_, all());
        data_ = all().subspan(header.header_size);
        metadata_ = std::move(header.metadata);
        for (auto& [name, it] : header.tensors) {
            tensors_.emplace(name, tensor{std::move(it.dtype), std::move(it.shape),
                                          data_.subspan(it.first, it.last - it.first), it.count});
        }
    }

    std::string path_;
    detail::file_mapping contents_;
    std::span<const std::byte> data_;
    std::map<std::string, tensor, std::less<>> tensors_;
    std::map<std::string, std::string, std::less<>> metadata_;
    mutable std::mutex copying_;
    mutable std::map<const tensor*, std::vector<std::byte>> copies_;  ///< of arrays that are not aligned
};

}}  // namespace mp
