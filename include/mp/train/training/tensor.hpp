// SPDX-License-Identifier: MIT
/// \file
/// A matrix that owns its elements: activations, gradients of activations, inputs.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// rows * columns; throws where the bytes of as many elements do not fit into memory.
MP_CORE_FUNCTION std::size_t checked_element_count(std::string_view function, std::ptrdiff_t rows,
                                                   std::ptrdiff_t columns, std::size_t element_size);
[[noreturn]] MP_CORE_FUNCTION void throw_tensor_grows();

/// The memory and the shape of a tensor.
class tensor_memory {
public:
    static constexpr std::size_t alignment = 64;

    MP_ALWAYS_INLINE tensor_memory() noexcept {}
    tensor_memory(tensor_memory&& other) noexcept;
    /// Exchanges the two.
    tensor_memory& operator=(tensor_memory&& other) noexcept;
    ~tensor_memory();

    /// Changes the shape in the memory of the host. Returns true if the memory is new, and has no values yet.
    bool resize(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t element_size);
    /// Takes memory of a device for as many elements as the shape has.
    void adopt(std::shared_ptr<void> made, std::ptrdiff_t rows, std::ptrdiff_t columns) noexcept;
    /// Changes the shape within the memory.
    MP_ALWAYS_INLINE void reshape(std::ptrdiff_t rows, std::ptrdiff_t columns) noexcept {
        rows_ = rows;
        columns_ = columns;
    }

    [[nodiscard]] MP_ALWAYS_INLINE bool on_device() const noexcept { return device_ != nullptr; }
    [[nodiscard]] MP_ALWAYS_INLINE void* data() const noexcept { return data_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::ptrdiff_t rows() const noexcept { return rows_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::ptrdiff_t columns() const noexcept { return columns_; }
    /// Elements for which there is memory.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t capacity() const noexcept { return capacity_; }

private:
    void release() noexcept;

    std::shared_ptr<void> device_;  ///< what owns data_, if the host does not
    void* data_ = nullptr;
    std::size_t capacity_ = 0;
    std::ptrdiff_t rows_ = 0;
    std::ptrdiff_t columns_ = 0;
};

#if MP_CORE_BODIES
MP_CORE_FUNCTION std::size_t checked_element_count(std::string_view function, std::ptrdiff_t rows,
                                                   std::ptrdiff_t columns, std::size_t element_size) {
    if (rows < 0) throw_argument(function, "rows", rows, "must not be negative");
    if (columns < 0) throw_argument(function, "columns", columns, "must not be negative");
    const auto most =
        (std::numeric_limits<std::ptrdiff_t>::max)() / static_cast<std::ptrdiff_t>(element_size);
    if (columns != 0 && rows > most / columns) {
        throw_argument(function, "rows", rows,
                       "must fit into memory with columns, which is " + error_text(columns));
    }
    return static_cast<std::size_t>(rows * columns);
}
[[noreturn]] MP_CORE_FUNCTION void throw_tensor_grows() {
    throw_error(state_error(
        "mp::tensor::resize: it would have to grow while a graph is captured; run the step once before"));
}

MP_CORE_FUNCTION tensor_memory::tensor_memory(tensor_memory&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      rows_(std::exchange(other.rows_, 0)),
      columns_(std::exchange(other.columns_, 0)) {}
MP_CORE_FUNCTION tensor_memory& tensor_memory::operator=(tensor_memory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(rows_, other.rows_);
    std::swap(columns_, other.columns_);
    return *this;
}
MP_CORE_FUNCTION tensor_memory::~tensor_memory() {
    release();
}

MP_CORE_FUNCTION bool tensor_memory::resize(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                            std::size_t element_size) {
    const std::size_t count = checked_element_count("mp::tensor::resize", rows, columns, element_size);
    const bool grows = count > capacity_ || device_ != nullptr;
    if (grows) {
        void* const memory = ::operator new(count * element_size, std::align_val_t{alignment});
        release();
        data_ = memory;
        capacity_ = count;
    }
    reshape(rows, columns);
    return grows;
}
MP_CORE_FUNCTION void tensor_memory::adopt(std::shared_ptr<void> made, std::ptrdiff_t rows,
                                           std::ptrdiff_t columns) noexcept {
    release();
    device_ = std::move(made);
    data_ = device_.get();
    capacity_ = static_cast<std::size_t>(rows * columns);
    reshape(rows, columns);
}
MP_CORE_FUNCTION void tensor_memory::release() noexcept {
    if (device_ != nullptr) {
        device_.reset();
    } else if (data_ != nullptr) {
        ::operator delete(data_, std::align_val_t{alignment});
    }
    data_ = nullptr;
    capacity_ = 0;
}
#endif

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A copy on the host of what lies in the memory of an executor, which is waited for.
template <executor Executor, class Element>
[[nodiscard]] std::vector<Element> host_copy(const Executor& exec, std::span<const Element> values) {
    std::vector<Element> copies(values.size());
    if constexpr (gpu_executor<Executor>) {
        detail::executor_memory<Executor>::copy_to_host(exec, copies.data(), values.data(),
                                                        values.size_bytes());
    } else {
        std::copy(values.begin(), values.end(), copies.begin());
    }
    return copies;
}

/// An owning dense row-major matrix, aligned to a cache line and zero-initialised.
///
///     mp::tensor<mp::bfloat16> hidden(tokens, 4 * width);
///     mp::ops::linear(exec, x, w, b, hidden.view());
///     hidden.resize(fewer, 4 * width);          // keeps its memory
///
/// With an executor for GPUs its elements are in device memory, which the host can copy, but not look at:
///
///     mp::tensor<mp::bfloat16> hidden(stream, tokens, 4 * width);
///     mp::ops::linear(stream, x, w, b, hidden.view());
///     std::vector<mp::bfloat16> back = hidden.to_host(stream);
///
/// Moves, and is not copied. Not synchronised.
template <class Element>
class tensor {
    static_assert(std::is_trivially_copyable_v<Element> && !std::is_const_v<Element>);

public:
    /// Bytes that the first element's address is a multiple of: AMX and streaming stores like cache lines.
    static constexpr std::size_t alignment = detail::tensor_memory::alignment;

    tensor() = default;
    /// \throws argument_error  a negative size, or one that does not fit into memory
    tensor(std::ptrdiff_t rows, std::ptrdiff_t columns) { resize(rows, columns); }
    /// In the memory of an executor.
    template <executor Executor>
    tensor(const Executor& exec, std::ptrdiff_t rows, std::ptrdiff_t columns) {
        resize(exec, rows, columns);
    }

    /// Another shape, in the memory of the host. Allocates only where more elements are needed than ever before, and then all of them
    /// are zeros; else they are what was in their places of memory.
    ///
    /// \throws argument_error  as the constructor; the tensor is as before
    void resize(std::ptrdiff_t rows, std::ptrdiff_t columns) {
        if (memory_.resize(rows, columns, sizeof(Element))) {
            std::uninitialized_fill_n(data(), memory_.capacity(), Element{});
        }
    }
    /// The same in the memory of an executor: what was elsewhere is not taken along. What is allocated on a
    /// GPU is so in the order of the stream, which must outlive the tensor.
    ///
    /// \throws argument_error  also where there is not as much device memory
    /// \throws state_error     it has to grow while the executor's work is captured into a graph
    template <executor Executor>
    void resize(const Executor& exec, std::ptrdiff_t rows, std::ptrdiff_t columns) {
        if constexpr (!gpu_executor<Executor>) {
            resize(rows, columns);
        } else {
            using memory = detail::executor_memory<Executor>;
            constexpr std::string_view function = "mp::tensor::resize";
            const std::size_t count = detail::checked_element_count(function, rows, columns, sizeof(Element));
            if (count <= (memory_.on_device() ? memory_.capacity() : 0))
                return memory_.reshape(rows, columns);
            if (!memory::can_keep(exec)) detail::throw_tensor_grows();
            std::shared_ptr<void> made = memory::allocate(exec, count * sizeof(Element));
            if (made == nullptr) {
                detail::throw_argument(function, "bytes of device memory", count * sizeof(Element),
                                       "must be available");
            }
            memory::clear(exec, made.get(), count * sizeof(Element));
            memory_.adopt(std::move(made), rows, columns);
        }
    }

    /// Copies the host's elements into it, which have been read when this returns.
    ///
    /// \throws argument_error  their number is another one
    template <executor Executor>
    void copy_from(const Executor& exec, std::span<const Element> values) {
        if (values.size() != size()) {
            detail::throw_argument("mp::tensor::copy_from", "values.size()", values.size(),
                                   "must be that of the tensor, which is " + detail::error_text(size()));
        }
        if constexpr (gpu_executor<Executor>) {
            detail::executor_memory<Executor>::copy_to_device(exec, data(), values.data(),
                                                              values.size_bytes());
        } else {
            std::copy(values.begin(), values.end(), data());
        }
    }
    /// A copy on the host; waits for the executor.
    template <executor Executor>
    [[nodiscard]] std::vector<Element> to_host(const Executor& exec) const {
        return host_copy(exec, values());
    }
    /// Whether its elements are in device memory.
    [[nodiscard]] bool on_device() const noexcept { return memory_.on_device(); }

    [[nodiscard]] matrix_view<Element> view() { return row_major(data(), rows(), columns()); }
    [[nodiscard]] matrix_view<const Element> view() const {
        return row_major(static_cast<const Element*>(data()), rows(), columns());
    }
    /// All elements, row after row.
    [[nodiscard]] std::span<Element> values() { return {data(), size()}; }
    [[nodiscard]] std::span<const Element> values() const { return {data(), size()}; }

    [[nodiscard]] std::ptrdiff_t rows() const noexcept { return memory_.rows(); }
    [[nodiscard]] std::ptrdiff_t columns() const noexcept { return memory_.columns(); }
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(rows() * columns()); }
    /// Bytes of its memory.
    [[nodiscard]] std::size_t bytes() const noexcept { return memory_.capacity() * sizeof(Element); }

private:
    [[nodiscard]] Element* data() const noexcept { return static_cast<Element*>(memory_.data()); }

    detail::tensor_memory memory_;
};

}}  // namespace mp
