// SPDX-License-Identifier: MIT
/// \file
/// NumPy's files of arrays, .npy, mapped into memory and written:
///
///     6 bytes       \x93NUMPY
///     2 bytes       version 1.0, 2.0 or 3.0
///     2 or 4 bytes  the length of the header, little-endian; 4 from version 2 on
///     the header    {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, spaces, end of line
///     the elements  without gaps; another array may follow
///
/// Source: numpy/lib/_format_impl.py. NumPy itself has no word for the types of ml_dtypes: they are bytes
/// without meaning there, '<V2' for bfloat16 and '<V1' for all others ('<f1' for float8_e5m2, which np.load
/// refuses), and whoever reads says what they are: np.load(f).view(ml_dtypes.bfloat16) in Python, the type of
/// view<mp::bfloat16>() here.
#pragma once

#include <mp/arrays/io/file_replacement.hpp>
#include <mp/arrays/io/stored_elements.hpp>
#include <mp/arrays/io/text_excerpt.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The descr that NumPy and ml_dtypes write for a type, without its order of bytes.
template <tensor_element Value>
std::string npy_descr() {
    const char* kind = "V";
    if constexpr (std::is_same_v<Value, bool>) {
        kind = "b";
    } else if constexpr (std::is_same_v<Value, half> || std::is_floating_point_v<Value>) {
        kind = "f";
    } else if constexpr (std::is_integral_v<Value>) {
        kind = std::is_signed_v<Value> ? "i" : "u";
    }
    return kind + error_text(sizeof(Value));
}

/// Whether elements that a file calls `descr` (without the order of bytes) can be of the type: its own name,
/// or, for those that NumPy has not, bytes or unsigned integers of the size.
template <tensor_element Value>
bool npy_descr_suits(std::string_view descr) {
    if (descr == npy_descr<Value>()) return true;
    if constexpr (reduced<Value> && !std::is_same_v<Value, half>) {
        if (std::is_same_v<Value, float8_e5m2> && descr == "f1") return true;
        return descr == "u" + error_text(sizeof(Value));
    }
    return false;
}

/// Bytes of a header that is read or written; NumPy reads 10 000 unless it is told to read more.
inline constexpr std::size_t longest_npy_header = std::size_t{1} << 20;

/// Reads the header, a literal of Python: a dictionary of three members and nothing else.
class npy_header_reader {
public:
    npy_header_reader(const std::string& path, std::string_view text) : path_(path), rest_(text) { read(); }

    std::string descr;
    bool fortran_order = false;
    std::vector<std::size_t> shape;

private:
    [[noreturn]] void fail(std::string_view what) const {
        throw_file(path_, "the header is damaged: " + std::string(what));
    }
    void read() {
        unsigned seen = 0;
        require('{');
        while (!take('}')) {
            const std::string key = string();
            require(':');
            unsigned member = 0;
            if (key == "descr") {
                member = 1;
                skip_spaces();
                if (rest_.starts_with('[')) {
                    throw_file(path_, "has elements of several fields, and only numbers are read");
                }
                descr = string();
            } else if (key == "fortran_order") {
                member = 2;
                fortran_order = take_word("True");
                if (!fortran_order && !take_word("False")) fail("fortran_order is neither True nor False");
            } else if (key == "shape") {
                member = 4;
                shape = numbers();
            } else {
                fail("there is an unknown " + quoted_excerpt(key));
            }
            if ((seen & member) != 0) fail("a member is there twice");
            seen |= member;
            if (!take(',')) {
                require('}');
                break;
            }
        }
        skip_spaces();
        if (seen != 7U) fail("it lacks a member");
        if (!rest_.empty()) fail("there is more after the end");
    }
    void skip_spaces() {
        while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n' || rest_.front() == '\t')) {
            rest_.remove_prefix(1);
        }
    }
    bool take(char character) {
        skip_spaces();
        if (rest_.empty() || rest_.front() != character) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool take_word(std::string_view word) {
        skip_spaces();
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    void require(char character) {
        if (!take(character)) fail(std::string("'") + character + "' was expected");
    }
    /// Without escapes, which no descr needs.
    std::string string() {
        skip_spaces();
        const char quote = rest_.empty() ? '\0' : rest_.front();
        const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
        if (end == std::string_view::npos) fail("a string was expected");
        std::string result(rest_.substr(1, end - 1));
        rest_.remove_prefix(end + 1);
        return result;
    }
    std::vector<std::size_t> numbers() {
        std::vector<std::size_t> result;
        require('(');
        while (!take(')')) {
            skip_spaces();
            std::size_t number = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
            if (error != std::errc{} || (rest_.front() == '0' && end != rest_.data() + 1)) {
                fail("a whole number was expected");
            }
            rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
            take_word("L");  // of Python 2
            result.push_back(number);
            if (!take(',')) {
                require(')');
                // Python reads (1) as a number.
                if (result.size() == 1) fail("the shape is a number in parentheses, not a tuple");
                break;
            }
        }
        return result;
    }

    const std::string& path_;
    std::string_view rest_;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// An array of a .npy file, mapped into memory as long as the object, or a copy of it, lives.
///
///     const mp::npy_file file("weights.npy");
///     mp::matrix_view<const float> w = file.matrix<float>();     // in place, in C's order or Fortran's
///     auto codes = file.view<mp::bfloat16>();                    // '<V2': the caller knows what it is
///     for (const mp::npy_file& it : mp::npy_file::read_all("steps.npy")) it.read(values);
///
/// A descr that NumPy and ml_dtypes do not write for the type asked for is refused, except that types which
/// NumPy has not are also read from unsigned integers of their size; bytes() has anything else.
class npy_file {
public:
    /// Reads a file of one array.
    ///
    /// \throws file_error  it cannot be read, or is not such a file
    explicit npy_file(const std::string& path, file_access access = file_access::map)
        : npy_file(path, std::make_shared<const detail::file_mapping>(path, access), 0) {
        require_end();
    }
    /// A file of one array whose bytes are in memory, where they stay as long as this object; messages call it `name`.
    ///
    /// \throws file_error  it is not such a file
    npy_file(const std::string& name, std::span<const std::byte> bytes)
        : npy_file(name, std::make_shared<const detail::file_mapping>(bytes), 0) {
        require_end();
    }

    /// Reads all arrays of a file, in their order: np.save writes them, called repeatedly with one file object. The
    /// later ones may begin where view() refuses their type.
    ///
    /// \throws file_error  it cannot be read, or anything in it is no array
    [[nodiscard]] static std::vector<npy_file> read_all(const std::string& path,
                                                        file_access access = file_access::map) {
        const auto contents = std::make_shared<const detail::file_mapping>(path, access);
        std::vector<npy_file> arrays;
        std::size_t offset = 0;
        do {
            arrays.push_back(npy_file(path, contents, offset));
            offset = arrays.back().end_;
        } while (offset != contents->bytes().size());
        return arrays;
    }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// As NumPy names the elements: '<f4', '|u1', '<V2' ...
    [[nodiscard]] const std::string& descr() const noexcept { return descr_; }
    [[nodiscard]] const std::vector<std::size_t>& shape() const noexcept { return shape_; }
    /// Whether the first index moves fastest.
    [[nodiscard]] bool fortran_order() const noexcept { return fortran_order_; }
    /// Number of elements, and all their bytes.
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

    /// The elements where they lie, in the order of the file.
    ///
    /// \throws file_error  they are of another type, big-endian, or not aligned
    template <detail::tensor_element Value>
    [[nodiscard]] std::span<const Value> view() const {
        require_type<Value>();
        if (big_endian_) detail::throw_file(place_, "is big-endian: read() it");
        return detail::elements_in_place<Value>(place_, "it", bytes_, count_);
    }
    /// Returns view() as a matrix in the order of the file. More than two dimensions in C's order are rows of the
    /// length of the last one; one dimension is a row, in either order.
    ///
    /// \throws file_error  as view(), it is in Fortran's order and has more than two dimensions, or its shape is too
    ///                     large for a matrix
    template <detail::tensor_element Value>
    [[nodiscard]] matrix_view<const Value> matrix() const {
        const std::span<const Value> elements = view<Value>();
        if (!fortran_order_ || shape_.size() < 2) return detail::as_matrix(place_, "it", elements, shape_);
        if (shape_.size() != 2) {
            detail::throw_file(place_, "has more than two dimensions, in the order of Fortran");
        }
        return column_major(elements.data(), static_cast<std::ptrdiff_t>(shape_[0]),
                            static_cast<std::ptrdiff_t>(shape_[1]));
    }
    /// Copies the elements, in the order of the file, into a range of their type and number. Both orders of bytes are
    /// read.
    ///
    /// \throws file_error  they are of another type, or their number is another; `values` are then as before
    template <class To>
    void read(To&& values) const {
        const auto to = detail::elements_of(values);
        using value = typename decltype(to)::element_type;
        require_type<value>();
        if (count_ != to.size()) {
            detail::throw_file(place_, "has " + detail::error_text(count_) + " elements, and " +
                                           detail::error_text(to.size()) + " were expected");
        }
        if constexpr (std::is_same_v<value, bool>) static_cast<void>(view<bool>());
        auto* const target = reinterpret_cast<std::byte*>(to.data());
        detail::copy_little_endian(target, bytes_.data(), sizeof(value), count_);
        for (std::size_t i = 0; big_endian_ && i < count_; ++i) {
            std::reverse(target + i * sizeof(value), target + (i + 1) * sizeof(value));
        }
    }

private:
    /// The array that begins at an offset of the file.
    npy_file(const std::string& path, std::shared_ptr<const detail::file_mapping> contents,
             std::size_t offset)
        : path_(path),
          place_(offset == 0 ? path : path + ", array at byte " + detail::error_text(offset)),
          contents_(std::move(contents)) {
        read_header(contents_->bytes().subspan(offset));
        end_ = static_cast<std::size_t>(bytes_.data() - contents_->bytes().data()) + bytes_.size();
    }

    /// Throws unless the file ends with this array.
    void require_end() const {
        if (end_ == contents_->bytes().size()) return;
        detail::throw_file(path_, "has " + detail::error_text(contents_->bytes().size() - end_) +
                                      " bytes after its array; npy_file::read_all reads several arrays");
    }

    template <class Value>
    void require_type() const {
        const std::string_view type = std::string_view(descr_).substr(1);
        if (detail::npy_descr_suits<Value>(type)) return;
        detail::throw_file(place_, "has elements of type " + detail::quoted_excerpt(descr_) + ", and '" +
                                       detail::npy_descr<Value>() + "' was expected");
    }
    void read_header(std::span<const std::byte> all) {
        const std::string_view text(reinterpret_cast<const char*>(all.data()), all.size());
        constexpr std::string_view magic = "\x93NUMPY";
        if (!text.starts_with(magic) || text.size() < 10) detail::throw_file(place_, "is no .npy file");
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
        const unsigned version = byte(6);
        if (version < 1 || version > 3 || byte(7) != 0) {
            detail::throw_file(place_, "is of version " + detail::error_text(version) + "." +
                                           detail::error_text(unsigned{byte(7)}) +
                                           ", and 1.0, 2.0 and 3.0 are read");
        }
        const std::size_t begin = version == 1 ? 10 : 12;
        std::size_t length = 0;
        for (std::size_t i = 8; i < begin && i < text.size(); ++i)
            length |= std::size_t{byte(i)} << (8 * (i - 8));
        if (length > detail::longest_npy_header || begin > text.size() || length > text.size() - begin) {
            detail::throw_file(place_, "is no .npy file, or was cut off: the header would have " +
                                           detail::error_text(length) + " bytes");
        }
        detail::npy_header_reader header(place_, text.substr(begin, length));
        descr_ = std::move(header.descr);
        shape_ = std::move(header.shape);
        fortran_order_ = header.fortran_order;
        std::size_t size = 0;
        const char* const end = descr_.data() + descr_.size();
        const bool has_order =
            descr_.size() >= 3 && std::string_view("<>|=").find(descr_[0]) != std::string_view::npos;
        if (has_order) {
            const auto [last, error] = std::from_chars(descr_.data() + 2, end, size);
            if (error != std::errc{} || last != end ||
                std::string_view("bfiucV").find(descr_[1]) == std::string_view::npos)
                size = 0;
        }
        if (size == 0 || size > 64) {
            detail::throw_file(
                place_, "has elements of type " + detail::quoted_excerpt(descr_) + ", which are not numbers");
        }
        big_endian_ =
            size > 1 && (descr_[0] == '>' || (descr_[0] == '=' && std::endian::native == std::endian::big));
        const std::optional<std::size_t> count = detail::element_count(shape_);
        count_ = count.value_or(0);
        bytes_ = all.subspan(begin + length);
        if (!count || !detail::are_dimensions(shape_) || count_ > bytes_.size() / size) {
            detail::throw_file(place_, "has the shape " + detail::shape_text(shape_) +
                                           ", which does not fit the " + detail::error_text(bytes_.size()) +
                                           " bytes after its header");
        }
        bytes_ = bytes_.first(count_ * size);
    }

    std::string path_;
    std::string place_;  // for messages
    std::shared_ptr<const detail::file_mapping> contents_;
    std::string descr_;
    std::vector<std::size_t> shape_;
    bool fortran_order_ = false;
    bool big_endian_ = false;
    std::size_t count_ = 0;
    std::span<const std::byte> bytes_;
    std::size_t end_ = 0;  // offset of the first byte after the array
};

/// Writes a .npy file that np.load reads: floats, half and integers as such, other formats as bytes that
/// .view(ml_dtypes.bfloat16) and its kin understand, a byte each for those of fewer than 8 bits. An old file
/// is replaced when the new one is on the disk.
///
/// \param shape  in C's order; without it the array has one dimension. Headers above 65 535 bytes make the file one
///               of version 2.0, as in NumPy.
///
/// \throws file_error      the file cannot be written; an old one is as before
/// \throws argument_error  the shape has another number of elements, or too many dimensions
template <class Values>
void save_npy(const std::string& path, const Values& values, const std::vector<std::size_t>& shape) {
    const auto from = detail::elements_of(values);
    using value = std::remove_const_t<typename decltype(from)::element_type>;
    if (detail::element_count(shape) != from.size() || !detail::are_dimensions(shape)) {
        detail::throw_argument("mp::save_npy", "values.size()", from.size(),
                               "must be the number of elements of the shape " + detail::shape_text(shape));
    }
    std::string header = "{'descr': '";
    header.append(sizeof(value) == 1 && !reduced<value> ? "|" : "<").append(detail::npy_descr<value>());
    header.append("', 'fortran_order': False, 'shape': (");
    for (std::size_t i = 0; i < shape.size(); ++i) {
        header.append(detail::error_text(shape[i])).append(i + 1 == shape.size() && i != 0 ? "" : ", ");
    }
    if (shape.size() == 1) header.pop_back();
    header.append("), }");
    // The elements begin at a multiple of 64 bytes. Version 2.0 has four bytes for the length instead of two.
    const auto padded = [&](std::size_t start) { return (start + header.size() + 1 + 63) / 64 * 64 - start; };
    const unsigned version = padded(10) < 65536 ? 1 : 2;
    const std::size_t length = padded(version == 1 ? 10 : 12);
    if (length > detail::longest_npy_header) {
        detail::throw_argument("mp::save_npy", "shape.size()", shape.size(),
                               "must be smaller: the header has at most " +
                                   detail::error_text(detail::longest_npy_header) + " bytes");
    }
    header.append(length - header.size() - 1, ' ').push_back('\n');
    std::string front = "\x93NUMPY";
    front.append({static_cast<char>(version), '\0'});
    for (unsigned i = 0; i < 2 * version; ++i) front.push_back(static_cast<char>(length >> (8 * i) & 255));
    detail::file_replacement file(path);
    file.write(front);
    file.write(header);
    const std::span<const std::byte> bytes = std::as_bytes(from);
    std::byte block[4096];
    for (std::size_t first = 0; first < bytes.size(); first += sizeof block) {
        const std::size_t size = (std::min)(sizeof block, bytes.size() - first);
        detail::copy_little_endian(block, bytes.data() + first, sizeof(value), size / sizeof(value));
        file.write({reinterpret_cast<const char*>(block), size});
    }
    file.commit();
}
/// Overload for an array of one dimension.
template <class Values>
void save_npy(const std::string& path, const Values& values) {
    save_npy(path, values, {detail::elements_of(values).size()});
}
/// Overload for a matrix without gaps, in its own order's nearest: rows.
template <class Value>
void save_npy(const std::string& path, matrix_view<Value> values) {
    if (values.order != storage_order::row_major || values.leading_dimension != values.columns) {
        detail::throw_argument("mp::save_npy", "values", "a matrix", "must be row-major and without gaps");
    }
    const auto rows = static_cast<std::size_t>(values.rows);
    const auto columns = static_cast<std::size_t>(values.columns);
    save_npy(path, std::span<const std::remove_const_t<Value>>(values.data, rows * columns), {rows, columns});
}

}}  // namespace mp
