// SPDX-License-Identifier: MIT
/// \file
/// Memory that products use while they run, kept between them.
#pragma once

#include <mp/base/argument_checks.hpp>
#include <mp/executor.hpp>
#include <mp/workspace.hpp>

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
/// One product at a time may use it. Contents are of no meaning between products. Products that are given
/// none take their memory from the workspace of the executor, if it has one.
class gemm_workspace {
public:
    gemm_workspace() = default;

    /// At least `bytes`, aligned to a page, valid until the next call. Throws argument_error if that many
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

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// `bytes` for a product, aligned to a page: of the workspace that it was given, else of its executor's, else
/// of `own`. Those of the executor's are given back with the frame that the caller has opened.
inline std::byte* product_memory(const cpu& exec, gemm_workspace* given, gemm_workspace& own,
                                 std::size_t bytes) {
    if (given != nullptr || exec.workspace == nullptr)
        return (given != nullptr ? *given : own).reserve(bytes);
    constexpr std::size_t page = 4096;
    static_cast<void>(addressable("mp::gemm", "bytes", bytes, 8));
    std::byte* const begin = exec.workspace->template allocate<std::byte>(bytes + page);
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(begin) % page;
    return begin + (misaligned == 0 ? 0 : page - misaligned);
}

}}  // namespace mp::detail
