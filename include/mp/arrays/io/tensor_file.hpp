// SPDX-License-Identifier: MIT
/// \file
/// Named arrays in a file of the safetensors format, mapped into memory.
#pragma once

#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/convert/packed_array.hpp>
#include <mp/arrays/io/stored_elements.hpp>
#include <mp/arrays/io/tensor_header.hpp>
#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/bfloat16.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#if MP_CORE_BODIES
#include <mp/error.hpp>

#include <utility>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

[[noreturn]] MP_CORE_FUNCTION void throw_count(const std::string& path, std::string_view name,
                                               std::size_t found, std::size_t expected);
/// Throws: elements of another type were expected.
[[noreturn]] MP_CORE_FUNCTION void throw_type(const std::string& path, std::string_view name,
                                              std::string_view found, std::string_view expected);
/// Throws: elements of this type are not converted.
[[noreturn]] MP_CORE_FUNCTION void throw_unconverted(const std::string& path, std::string_view name,
                                                     std::string_view found);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Rounds stored elements of the type Source once, if `dtype` is that.
template <class Source, class To, std::size_t Extent>
bool convert_stored(std::string_view dtype, std::span<const std::byte> bytes, std::span<To, Extent> to) {
    if (dtype != dtype_of<Source>()) return false;
    constexpr std::size_t block = 1024;
    Source unconverted[block];
    for (std::size_t first = 0; first < to.size(); first += block) {
        const std::size_t count = (std::min)(block, to.size() - first);
        copy_little_endian(reinterpret_cast<std::byte*>(unconverted), bytes.data() + first * sizeof(Source),
                           sizeof(Source), count);
        convert(cpu{}, std::span<const Source>(unconverted, count), to.subspan(first, count));
    }
    return true;
}
template <class... Sources, class To, std::size_t Extent>
bool convert_stored_as_one_of(std::string_view dtype, std::span<const std::byte> bytes,
                              std::span<To, Extent> to) {
    return (convert_stored<Sources>(dtype, bytes, to) || ...);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

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
    explicit tensor_file(const std::string& path, file_access access = file_access::map);
    /// A file whose bytes are in memory, where they stay as long as this object; messages call it `name`.
    ///
    /// \throws file_error  it is not such a file
    tensor_file(const std::string& name, std::span<const std::byte> bytes);
    tensor_file(const tensor_file&) = delete;
    tensor_file& operator=(const tensor_file&) = delete;
    ~tensor_file();

    [[nodiscard]] MP_ALWAYS_INLINE const std::string& path() const noexcept { return path_; }
    /// By name.
    [[nodiscard]] MP_ALWAYS_INLINE const std::map<std::string, tensor, std::less<>>& tensors()
        const noexcept {
        return tensors_;
    }
    [[nodiscard]] MP_ALWAYS_INLINE const std::map<std::string, std::string, std::less<>>& metadata()
        const noexcept {
        return metadata_;
    }
    /// All arrays as they lie in the file, and the whole of it.
    [[nodiscard]] MP_ALWAYS_INLINE std::span<const std::byte> data() const noexcept { return data_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::span<const std::byte> all() const noexcept {
        return contents_.bytes();
    }

    /// \throws file_error  there is none of this name
    [[nodiscard]] const tensor& at(std::string_view name) const;

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
    [[nodiscard]] MP_ALWAYS_INLINE std::span<const Value> view(std::string_view name) const {
        const tensor& found = require<Value>(name, at(name).count);
        return detail::elements_in_place<Value>(path_, detail::quoted_excerpt(name),
                                                aligned_bytes(found, alignof(Value)), found.count);
    }
    /// Returns view() as a matrix whose rows have the length of the last dimension.
    ///
    /// \throws file_error  as view(), or the shape is too large for a matrix, which one with a zero may be
    template <detail::tensor_element Value>
    [[nodiscard]] MP_ALWAYS_INLINE matrix_view<const Value> matrix(std::string_view name) const {
        return detail::as_matrix(path_, detail::quoted_excerpt(name), view<Value>(name), at(name).shape);
    }
    /// An array of "F6_E2M3", "F6_E3M2" or "F4" where it lies.
    ///
    /// \throws file_error  there is none, or it is of another type
    template <packable Value>
    [[nodiscard]] MP_ALWAYS_INLINE packed_span<const Value> packed_view(std::string_view name) const {
        const tensor& found = at(name);
        if (found.dtype != detail::packed_dtype_of<Value>()) {
            detail::throw_type(path_, name, found.dtype, detail::packed_dtype_of<Value>());
        }
        return {found.bytes.data(), found.count};
    }

    /// Copies an array of this name, of the same type and number of elements. Formats of 6 and 4 bits have a
    /// byte each in arrays of theirs, and are packed where the file has "F6_E2M3", "F6_E3M2" and "F4":
    /// packed_view() is for those.
    ///
    /// \throws file_error  there is none, or it is another; `values` are then as before
    template <class To>
    MP_ALWAYS_INLINE void read(std::string_view name, To&& values) const {
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
    MP_ALWAYS_INLINE void read_share(std::string_view name, To&& values, std::size_t first,
                                     std::size_t of) const {
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
    MP_ALWAYS_INLINE void read_converted(std::string_view name, To&& values) const {
        const auto to = detail::elements_of(values);
        const tensor& from = at(name);
        if (from.count != to.size()) detail::throw_count(path_, name, from.count, to.size());
        if (!detail::convert_stored_as_one_of<float, half, bfloat16, double, float8_e4m3fn, float8_e5m2>(
                from.dtype, from.bytes, to)) {
            detail::throw_unconverted(path_, name, from.dtype);
        }
    }
    /// Checks that read() of this type and size would succeed.
    template <detail::tensor_element Value>
    MP_ALWAYS_INLINE const tensor& require(std::string_view name, std::size_t count) const {
        return require(name, detail::dtype_of<Value>(), detail::format_beyond_dtype<Value>(), count);
    }
    /// Checks an array of a type that is given by its names.
    ///
    /// \param format  the name of a format that the dtype does not tell; empty where it does
    const tensor& require(std::string_view name, std::string_view dtype, std::string_view format,
                          std::size_t count) const;

private:
    /// Returns the bytes of an array, or a copy where they are not aligned.
    std::span<const std::byte> aligned_bytes(const tensor& it, std::size_t alignment) const;
    void read_header();

    std::string path_;
    detail::file_mapping contents_;
    std::span<const std::byte> data_;
    std::map<std::string, tensor, std::less<>> tensors_;
    std::map<std::string, std::string, std::less<>> metadata_;
    mutable std::mutex copying_;
    mutable std::map<const tensor*, std::vector<std::byte>> copies_;  ///< of arrays that are not aligned
};

}}  // namespace mp

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

[[noreturn]] MP_CORE_FUNCTION void throw_count(const std::string& path, std::string_view name,
                                               std::size_t found, std::size_t expected) {
    throw_file(path, quoted_excerpt(name) + " has " + error_text(found) + " elements, and " +
                         error_text(expected) + " were expected");
}
[[noreturn]] MP_CORE_FUNCTION void throw_type(const std::string& path, std::string_view name,
                                              std::string_view found, std::string_view expected) {
    std::string message = quoted_excerpt(name) + " has elements of type ";
    throw_file(path, message.append(found).append(", and ").append(expected).append(" was expected"));
}
[[noreturn]] MP_CORE_FUNCTION void throw_unconverted(const std::string& path, std::string_view name,
                                                     std::string_view found) {
    std::string message = quoted_excerpt(name) + " has elements of type ";
    throw_file(path, message.append(found).append(", which are not converted"));
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION tensor_file::tensor_file(const std::string& path, file_access access)
    : path_(path), contents_(path, access) {
    read_header();
}
MP_CORE_FUNCTION tensor_file::tensor_file(const std::string& name, std::span<const std::byte> bytes)
    : path_(name), contents_(bytes) {
    read_header();
}
MP_CORE_FUNCTION tensor_file::~tensor_file() = default;

MP_CORE_FUNCTION const tensor_file::tensor& tensor_file::at(std::string_view name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) detail::throw_file(path_, "there is no " + detail::quoted_excerpt(name));
    return found->second;
}

MP_CORE_FUNCTION const tensor_file::tensor& tensor_file::require(std::string_view name,
                                                                 std::string_view dtype,
                                                                 std::string_view format,
                                                                 std::size_t count) const {
    const tensor& found = at(name);
    const auto stored = metadata_.find("format." + std::string(name));
    const std::string_view stored_format = stored != metadata_.end() ? stored->second : std::string_view();
    if (found.dtype != dtype || stored_format != format) {
        detail::throw_type(path_, name, stored_format.empty() ? found.dtype : stored_format,
                           format.empty() ? dtype : format);
    }
    if (found.count != count) detail::throw_count(path_, name, found.count, count);
    if (dtype == "BOOL") {
        static_cast<void>(
            detail::elements_in_place<bool>(path_, detail::quoted_excerpt(name), found.bytes, count));
    }
    return found;
}

MP_CORE_FUNCTION std::span<const std::byte> tensor_file::aligned_bytes(const tensor& it,
                                                                       std::size_t alignment) const {
    if (reinterpret_cast<std::uintptr_t>(it.bytes.data()) % alignment == 0) return it.bytes;
    const std::lock_guard lock(copying_);
    std::vector<std::byte>& copy = copies_[&it];
    if (copy.empty()) copy.assign(it.bytes.begin(), it.bytes.end());
    return copy;
}

MP_CORE_FUNCTION void tensor_file::read_header() {
    detail::tensor_directory header = detail::read_tensor_directory(path_, all());
    data_ = all().subspan(header.header_size);
    metadata_ = std::move(header.metadata);
    for (auto& [name, it] : header.tensors) {
        tensors_.emplace(name, tensor{std::move(it.dtype), std::move(it.shape),
                                      data_.subspan(it.first, it.last - it.first), it.count});
    }
}

}}  // namespace mp
#endif
