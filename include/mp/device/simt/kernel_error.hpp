// SPDX-License-Identifier: MIT
/// \file
/// The exception for undefined behaviour of a kernel that runs on the host.
#pragma once

#include <mp/error.hpp>

#include <cstddef>
#include <string>

namespace mp {

/// Kinds of undefined behaviour.
enum class kernel_violation : unsigned char {
    divergence,          ///< lanes of a warp arrive at different collective operations
    deadlock,            ///< threads wait for an event that no thread will cause
    uninitialised_read,  ///< memory is read before it has been written
    unfinished_copy,     ///< the target of a copy is accessed before the copy was waited for, or its source
                         ///< changed
    race,                ///< two threads access the same memory, one writes, and nothing orders them
    bounds,              ///< an access outside of the block's shared memory, or of what the checker knows
    alignment,           ///< an address that the instruction does not accept
    argument,            ///< an operand that the instruction does not accept
    early_exit,          ///< a block left while others, or copies, still reach into its shared memory
    missing_fence,  ///< what was written by ordinary stores is read by an asynchronous unit without a fence
};

/// Undefined behaviour of a kernel on the simulated GPU: on a device it could give wrong results, hang or stop. The message
/// names the launch, block, thread, warp, lane, the address in shared memory, the line of the kernel and the broken rule:
///
///     mp::simulated_gpu: mine: block 3, thread 37 (warp 1, lane 5), tile.hpp:120: reads 16 bytes at shared
///     address 4608, which nobody has written
class kernel_error : public error {
public:
    kernel_error(kernel_violation violation, std::ptrdiff_t block, int thread, std::ptrdiff_t address,
                 const std::string& message)
        : error(message), violation_(violation), block_(block), thread_(thread), address_(address) {}

    [[nodiscard]] kernel_violation violation() const noexcept { return violation_; }
    /// Number of the block in the grid.
    [[nodiscard]] std::ptrdiff_t block() const noexcept { return block_; }
    /// Number of the thread in its block; -1 where it is not one thread's fault, as in a deadlock.
    [[nodiscard]] int thread() const noexcept { return thread_; }
    /// Offset in the block's shared memory; -1 where none is concerned.
    [[nodiscard]] std::ptrdiff_t address() const noexcept { return address_; }

private:
    kernel_violation violation_;
    std::ptrdiff_t block_;
    int thread_;
    std::ptrdiff_t address_;
};

}  // namespace mp
