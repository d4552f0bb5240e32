// SPDX-License-Identifier: MIT
/// \file
/// Memory that products use while they run, kept between them.
#pragma once

#include <mp/detail/container_size.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace mp {

/// Memory for packed blocks. A product that is given one allocates nothing once the workspace has grown to
/// what the largest product needed, so that a loop of products runs without the heap:
///
///     mp::gemm_workspace workspace;
///     for (...) mp::gemm(exec, 1, a, b, 0, c, {}, workspace);
///
/// One product at a time may use it. Contents are of no meaning between products.
class gemm_workspace {
public:
    gemm_workspace() = default;

    /// At least `bytes`, aligned to a page, valid until the next call. Throws argument_error if so many
    /// cannot be addressed; on std::bad_alloc, too, the workspace is as before.
    std::byte* reserve(std::size_t bytes) {
        constexpr std::size_t page = 4096;
        if (bytes > size_) {
            // An eighth of all addresses, which leaves room for the page.
            static_cast<void>(detail::addressable("mp::gemm_workspace::reserve", "bytes", bytes, 8));
            std::unique_ptr<std::byte[]> larger(new std::byte[bytes + page]);
            memory_ = std::move(larger);
            size_ = bytes;
        }
        const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(memory_.get()) % page;
        return memory_.get() + (misaligned == 0 ? 0 : page - misaligned);
    }

    /// Bytes that it holds.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    std::unique_ptr<std::byte[]> memory_;
    std::size_t size_ = 0;
};

}  // namespace mp
