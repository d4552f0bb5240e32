// SPDX-License-Identifier: MIT
/// \file
/// Objects that are told which arrays the ops of their thread write.
#pragma once

#include <mp/config.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// While it lives, written() is called with the address of every array that an op of its thread has written or
/// added to. Ops that the kernel of an op calls do not count: their arrays are the kernel's business. For the
/// thread that makes it, which also destroys it.
class write_watch {
public:
    write_watch() noexcept : outer_(innermost()) { innermost() = this; }
    write_watch(const write_watch&) = delete;
    write_watch& operator=(const write_watch&) = delete;

    /// Tells all that watch this thread.
    static void tell(const void* array, bool added) noexcept {
        for (write_watch* it = innermost(); it != nullptr; it = it->outer_) it->written(array, added);
    }

    /// Number of the iteration on this thread: what was told in an earlier one, which may have been abandoned, no
    /// longer counts.
    [[nodiscard]] static std::uint64_t iteration() noexcept { return iterations(); }
    /// Begins an iteration.
    static void begin_iteration() noexcept { ++iterations(); }

    /// While it lives, nobody is told anything.
    class [[nodiscard]] silence {
    public:
        [[nodiscard]] silence() noexcept : watch_(innermost()) {
            if (watch_ != nullptr) innermost() = nullptr;
        }
        ~silence() {
            if (watch_ != nullptr) innermost() = watch_;
        }
        silence(const silence&) = delete;
        silence& operator=(const silence&) = delete;

    private:
        write_watch* watch_;
    };

protected:
    // Watches may end in any order.
    ~write_watch() {
        write_watch** it = &innermost();
        while (*it != nullptr && *it != this) it = &(*it)->outer_;
        if (*it == this) *it = outer_;
    }

    /// \param added  what was there is part of what is there now
    virtual void written(const void* array, bool added) noexcept = 0;

private:
    /// Beside the autocast region, the only state of the library outside of objects.
    static write_watch*& innermost() noexcept {
        static constinit thread_local write_watch* watch = nullptr;
        return watch;
    }

    static std::uint64_t& iterations() noexcept {
        static constinit thread_local std::uint64_t count = 0;
        return count;
    }

    write_watch* outer_;
};

}}  // namespace mp::detail
