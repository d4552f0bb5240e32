// SPDX-License-Identifier: MIT
/// \file
/// Arrays of numbers of fewer than 8 bits without gaps between them: a view, and a container that owns.
///
/// The layout is a little-endian stream of bits: element i is bits [i * width, (i + 1) * width), where bit b
/// is bit b % 8 of byte b / 8. So element 0 of 4-bit numbers is the low half of byte 0, as in CUDA's
/// __nv_fp4x2_e2m1, ONNX and ml_dtypes' packed files, and four 6-bit numbers take three bytes.
#pragma once

#include <mp/base/argument_checks.hpp>
#include <mp/error.hpp>
#include <mp/numbers/format/operations.hpp>

#include <compare>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The code in the bits [bit, bit + Width) of a stream. Reads only the bytes in which they lie.
template <int Width>
MP_HOST_DEVICE constexpr unsigned packed_code(const std::byte* bytes, std::size_t bit) noexcept {
    static_assert(Width < 8);
    const std::size_t index = bit / 8;
    const auto shift = static_cast<unsigned>(bit % 8);
    unsigned word = static_cast<unsigned>(bytes[index]);
    if (shift + Width > 8) word |= static_cast<unsigned>(bytes[index + 1]) << 8;
    return (word >> shift) & ((1u << Width) - 1);
}

/// Writes the code there, and leaves all other bits as they are.
template <int Width>
MP_HOST_DEVICE constexpr void set_packed_code(std::byte* bytes, std::size_t bit, unsigned code) noexcept {
    const std::size_t index = bit / 8;
    const auto shift = static_cast<unsigned>(bit % 8);
    const unsigned mask = ((1u << Width) - 1) << shift;
    const unsigned word = code << shift;
    bytes[index] =
        static_cast<std::byte>((static_cast<unsigned>(bytes[index]) & ~mask & 0xffu) | (word & 0xffu));
    if (shift + Width > 8) {
        bytes[index + 1] = static_cast<std::byte>(
            (static_cast<unsigned>(bytes[index + 1]) & ~(mask >> 8) & 0xffu) | (word >> 8));
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A number that can be packed: one of fewer than 8 bits, which would waste part of a byte.
template <class T>
concept packable = reduced<T> && (layout_of<typename std::remove_cv_t<T>::format>::width < 8);

/// Bytes that `count` packed numbers take.
template <packable T>
[[nodiscard]] MP_HOST_DEVICE constexpr std::size_t packed_size(std::size_t count) noexcept {
    constexpr std::size_t width = layout_of<typename T::format>::width;
    // In this order, so that no count of elements that fit in memory overflows.
    return count / 8 * width + (count % 8 * width + 7) / 8;
}

}}  // namespace mp

namespace mp {

/// Stands for one element of a packed array, as a reference would: converts to its value and can be assigned.
/// Copying it copies the place, not the value; take value() or an object of type T for that.
template <packable T>
class packed_reference {
    static constexpr int width = layout_of<typename T::format>::width;

public:
    MP_HOST_DEVICE constexpr packed_reference(std::byte* bytes, std::size_t bit) noexcept
        : bytes_(bytes), bit_(bit) {}
    packed_reference(const packed_reference&) = default;

    [[nodiscard]] MP_HOST_DEVICE constexpr T value() const noexcept {
        return T::from_bits(static_cast<typename T::storage>(detail::packed_code<width>(bytes_, bit_)));
    }
    MP_HOST_DEVICE constexpr operator T() const noexcept { return value(); }
    MP_HOST_DEVICE explicit constexpr operator float() const noexcept { return static_cast<float>(value()); }

    // Const, as algorithms of the standard library want it of a reference that is an object.
    MP_HOST_DEVICE constexpr const packed_reference& operator=(T x) const noexcept {
        detail::set_packed_code<width>(bytes_, bit_, x.bits());
        return *this;
    }
    // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): onto itself it changes nothing
    MP_HOST_DEVICE constexpr packed_reference& operator=(const packed_reference& x) noexcept {
        detail::set_packed_code<width>(bytes_, bit_, x.value().bits());
        return *this;
    }
    MP_HOST_DEVICE friend constexpr void swap(packed_reference a, packed_reference b) noexcept {
        const T kept = a;
        a = b.value();
        b = kept;
    }

private:
    std::byte* bytes_;
    std::size_t bit_;
};

/// Random access to packed elements. `T` is const for an iterator that only reads, whose reference is the
/// value itself.
template <packable T>
class packed_iterator {
    using byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    using number = std::remove_const_t<T>;
    static constexpr int width = layout_of<typename number::format>::width;

public:
    using value_type = number;
    using difference_type = std::ptrdiff_t;
    using reference = std::conditional_t<std::is_const_v<T>, number, packed_reference<number>>;
    using pointer = void;
    using iterator_concept = std::random_access_iterator_tag;
    /// By the rules of old a reference must be a true one for anything more.
    using iterator_category = std::input_iterator_tag;

    packed_iterator() = default;
    MP_HOST_DEVICE constexpr packed_iterator(byte* bytes, std::size_t bit) noexcept
        : bytes_(bytes), bit_(bit) {}
    /// An iterator that reads from one that writes.
    template <class Mutable>
        requires(std::is_const_v<T> && std::same_as<const Mutable, T>)
    MP_HOST_DEVICE constexpr packed_iterator(packed_iterator<Mutable> other) noexcept
        : bytes_(other.bytes_), bit_(other.bit_) {}

    [[nodiscard]] MP_HOST_DEVICE constexpr reference operator*() const noexcept {
        if constexpr (std::is_const_v<T>) {
            return number::from_bits(
                static_cast<typename number::storage>(detail::packed_code<width>(bytes_, bit_)));
        } else {
            return {bytes_, bit_};
        }
    }
    [[nodiscard]] MP_HOST_DEVICE constexpr reference operator[](difference_type n) const noexcept {
        return *(*this + n);
    }
    MP_HOST_DEVICE constexpr packed_iterator& operator+=(difference_type n) noexcept {
        bit_ += static_cast<std::size_t>(n) * width;
        return *this;
    }
    MP_HOST_DEVICE constexpr packed_iterator& operator-=(difference_type n) noexcept { return *this += -n; }
    MP_HOST_DEVICE constexpr packed_iterator& operator++() noexcept { return *this += 1; }
    MP_HOST_DEVICE constexpr packed_iterator& operator--() noexcept { return *this -= 1; }
    MP_HOST_DEVICE constexpr packed_iterator operator++(int) noexcept {
        const packed_iterator before = *this;
        ++*this;
        return before;
    }
    MP_HOST_DEVICE constexpr packed_iterator operator--(int) noexcept {
        const packed_iterator before = *this;
        --*this;
        return before;
    }
    [[nodiscard]] MP_HOST_DEVICE friend constexpr packed_iterator operator+(packed_iterator i,
                                                                            difference_type n) noexcept {
        return i += n;
    }
    [[nodiscard]] MP_HOST_DEVICE friend constexpr packed_iterator operator+(difference_type n,
                                                                            packed_iterator i) noexcept {
        return i += n;
    }
    [[nodiscard]] MP_HOST_DEVICE friend constexpr packed_iterator operator-(packed_iterator i,
                                                                            difference_type n) noexcept {
        return i -= n;
    }
    [[nodiscard]] MP_HOST_DEVICE friend constexpr difference_type operator-(packed_iterator a,
                                                                            packed_iterator b) noexcept {
        return (static_cast<difference_type>(a.bit_) - static_cast<difference_type>(b.bit_)) / width;
    }
    [[nodiscard]] MP_HOST_DEVICE friend constexpr bool operator==(packed_iterator a,
                                                                  packed_iterator b) noexcept {
        return a.bit_ == b.bit_;
    }
    [[nodiscard]] friend constexpr std::strong_ordering operator<=>(packed_iterator a,
                                                                    packed_iterator b) noexcept {
        return a.bit_ <=> b.bit_;
    }

private:
    template <packable>
    friend class packed_iterator;

    byte* bytes_ = nullptr;
    std::size_t bit_ = 0;
};

/// A view of packed numbers in memory that somebody else owns; `T` is const for a view that only reads.
/// Copying it copies no element, and elements can be accessed on host and device.
///
///     std::vector<std::byte> bytes = read_file();
///     mp::packed_span<const mp::float4_e2m1fn> weights(bytes.data(), count);
///     float w = static_cast<float>(weights[7]);
template <packable T>
class packed_span {
    using number = std::remove_const_t<T>;

public:
    using element_type = T;
    using value_type = number;
    using byte_type = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    using iterator = packed_iterator<T>;
    using reference = typename iterator::reference;
    /// Bits of an element.
    static constexpr int width = layout_of<typename number::format>::width;

    packed_span() = default;
    /// `size` numbers from the lowest bit of *bytes on; packed_size<T>(size) bytes must be there.
    MP_HOST_DEVICE constexpr packed_span(byte_type* bytes, std::size_t size) noexcept
        : bytes_(bytes), size_(size) {}
    /// A view that reads from one that writes.
    template <class Mutable>
        requires(std::is_const_v<T> && std::same_as<const Mutable, T>)
    MP_HOST_DEVICE constexpr packed_span(packed_span<Mutable> other) noexcept
        : bytes_(other.data()), size_(other.size()), offset_(other.bit_offset()) {}

    [[nodiscard]] MP_HOST_DEVICE constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] MP_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }
    /// The byte in which the first element begins, and the bit of that byte at which it does. The latter is
    /// zero except for some parts that subspan cuts out.
    [[nodiscard]] MP_HOST_DEVICE constexpr byte_type* data() const noexcept { return bytes_; }
    [[nodiscard]] MP_HOST_DEVICE constexpr unsigned bit_offset() const noexcept { return offset_; }
    /// The bytes in which elements lie. The first and the last one may hold bits of something else.
    [[nodiscard]] constexpr std::span<byte_type> bytes() const noexcept {
        const std::size_t bits_at_end = offset_ + size_ % 8 * width;
        return {bytes_, size_ == 0 ? 0 : size_ / 8 * width + (bits_at_end + 7) / 8};
    }

    /// Element i, not checked: the value if T is const, else a packed_reference.
    [[nodiscard]] MP_HOST_DEVICE constexpr reference operator[](std::size_t i) const noexcept {
        return *iterator(bytes_, offset_ + i * width);
    }
    /// As operator[], but throws argument_error if there is no element i.
    [[nodiscard]] constexpr reference at(std::size_t i) const {
        if (i >= size_) {
            detail::throw_argument("mp::packed_span::at", "i", i,
                                   "must be less than size(), which is " + std::to_string(size_));
        }
        return (*this)[i];
    }
    /// The `count` elements from `first` on; throws argument_error if there are not as many.
    [[nodiscard]] constexpr packed_span subspan(std::size_t first, std::size_t count) const {
        if (first > size_) {
            detail::throw_argument("mp::packed_span::subspan", "first", first,
                                   "must be at most size(), which is " + std::to_string(size_));
        }
        if (count > size_ - first) {
            detail::throw_argument(
                "mp::packed_span::subspan", "count", count,
                "must be at most size() - first, which is " + std::to_string(size_ - first));
        }
        if (count == 0) return {};
        packed_span part;
        const std::size_t bit = offset_ + first * width;
        part.bytes_ = bytes_ + bit / 8;
        part.offset_ = static_cast<unsigned>(bit % 8);
        part.size_ = count;
        return part;
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr iterator begin() const noexcept { return {bytes_, offset_}; }
    [[nodiscard]] MP_HOST_DEVICE constexpr iterator end() const noexcept {
        return {bytes_, offset_ + size_ * width};
    }

private:
    byte_type* bytes_ = nullptr;
    std::size_t size_ = 0;
    unsigned offset_ = 0;
};

/// A resizable array of numbers of fewer than 8 bits that lie without gaps; see the top of this file for
/// their order. Bits behind the last element are zero. mp::pack and mp::unpack convert to and from ordinary
/// arrays of any numbers.
///
///     mp::packed_array<mp::float6_e2m3fn> a(8);        // 6 bytes, all elements +0
///     a[3] = mp::float6_e2m3fn{1.5f};
///     for (mp::float6_e2m3fn x : std::as_const(a)) ...
template <packable T>
class packed_array {
    static_assert(!std::is_const_v<T>, "mp::packed_array owns its elements, so they are not const");

public:
    using value_type = T;
    using reference = packed_reference<T>;
    using const_reference = T;
    using iterator = packed_iterator<T>;
    using const_iterator = packed_iterator<const T>;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    static constexpr int width = packed_span<T>::width;

    packed_array() = default;
    /// `size` elements of the code 0, which is zero (or the smallest number of a format without zero). Throws
    /// argument_error if the size cannot be addressed.
    explicit packed_array(std::size_t size)
        : bytes_(packed_size<T>(detail::addressable("mp::packed_array", "size", size, 8))), size_(size) {}
    packed_array(std::size_t size, T value) : packed_array(size) {
        for (std::size_t i = 0; i < size; ++i) (*this)[i] = value;
    }
    packed_array(std::initializer_list<T> values) : packed_array(values.begin(), values.end()) {}
    /// The elements of [first, last), which are of type T or convert to it implicitly.
    template <std::forward_iterator Iterator>
        requires(std::convertible_to<std::iter_reference_t<Iterator>, T>)
    packed_array(Iterator first, Iterator last)
        : packed_array(static_cast<std::size_t>(std::distance(first, last))) {
        for (std::size_t i = 0; first != last; ++first, ++i) (*this)[i] = *first;
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    [[nodiscard]] reference operator[](std::size_t i) noexcept { return view()[i]; }
    [[nodiscard]] T operator[](std::size_t i) const noexcept { return view()[i]; }
    /// As operator[], but throws argument_error if there is no element i.
    [[nodiscard]] reference at(std::size_t i) { return view().at(i); }
    [[nodiscard]] T at(std::size_t i) const { return view().at(i); }

    [[nodiscard]] iterator begin() noexcept { return view().begin(); }
    [[nodiscard]] iterator end() noexcept { return view().end(); }
    [[nodiscard]] const_iterator begin() const noexcept { return view().begin(); }
    [[nodiscard]] const_iterator end() const noexcept { return view().end(); }

    /// Keeps the elements that still fit; new ones have the code 0. Throws argument_error if the size cannot
    /// be addressed.
    void resize(std::size_t size) {
        bytes_.resize(packed_size<T>(detail::addressable("mp::packed_array::resize", "size", size, 8)));
        // What was an element before must not be left behind the new end.
        for (std::size_t bit = size * width; size < size_ && bit % 8 != 0; ++bit) {
            bytes_[bit / 8] &= ~(std::byte{1} << (bit % 8));
        }
        size_ = size;
    }

    [[nodiscard]] packed_span<T> view() noexcept { return {bytes_.data(), size_}; }
    [[nodiscard]] packed_span<const T> view() const noexcept { return {bytes_.data(), size_}; }
    operator packed_span<T>() noexcept { return view(); }              // NOLINT(google-explicit-constructor)
    operator packed_span<const T>() const noexcept { return view(); }  // NOLINT(google-explicit-constructor)

    /// The bytes, to be read from or written to files and devices. Whoever writes them keeps the bits
    /// behind the last element zero.
    [[nodiscard]] std::span<std::byte> bytes() noexcept { return bytes_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

    /// Whether the elements have the same codes; so a NaN equals itself, and zeros of both signs differ.
    [[nodiscard]] friend bool same_codes(const packed_array& a, const packed_array& b) noexcept {
        return a.size_ == b.size_ && a.bytes_ == b.bytes_;
    }

private:
    std::vector<std::byte> bytes_;
    std::size_t size_ = 0;
};

}  // namespace mp
