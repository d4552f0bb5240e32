// SPDX-License-Identifier: MIT
/// \file
/// Objects that are told which arrays the ops of their thread write.
#pragma once

#include <mp/config.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

class write_watch;
/// With the autocast region the only state of the library outside of objects: the innermost watch of the thread, and the
/// number of its iteration.
#if MP_CORE_BODIES
#if defined(MP_COMPILED)
__attribute__((used))
#endif
inline constinit thread_local write_watch* innermost_write_watch = nullptr;
#if defined(MP_COMPILED)
__attribute__((used))
#endif
inline constinit thread_local std::uint64_t watched_iteration = 0;
#else
extern constinit thread_local write_watch* innermost_write_watch;
extern constinit thread_local std::uint64_t watched_iteration;
#endif

/// While it lives, written() is called with the address of every array that an op of its thread has written or
/// added to. Ops that the kernel of an op calls do not count: their arrays are the kernel's business. For the
/// thread that makes it, which also destroys it.
class write_watch {
public:
    MP_ALWAYS_INLINE write_watch() noexcept : outer_(innermost_write_watch) { innermost_write_watch = this; }
    write_watch(const write_watch&) = delete;
    write_watch& operator=(const write_watch&) = delete;

    /// Tells all that watch this thread.
    MP_ALWAYS_INLINE static void tell(const void* array, bool added) noexcept {
        for (write_watch* it = innermost_write_watch; it != nullptr; it = it->outer_)
            it->written(array, added);
    }

    /// Number of the iteration on this thread: what was told in an earlier one, which may have been abandoned, no
    /// longer counts.
    [[nodiscard]] MP_ALWAYS_INLINE static std::uint64_t iteration() noexcept { return watched_iteration; }
    /// Begins an iteration.
    MP_ALWAYS_INLINE static void begin_iteration() noexcept { ++watched_iteration; }

    /// While it lives, nobody is told anything.
    class [[nodiscard]] silence {
    public:
        [[nodiscard]] MP_ALWAYS_INLINE silence() noexcept : watch_(innermost_write_watch) {
            if (watch_ != nullptr) innermost_write_watch = nullptr;
        }
        MP_ALWAYS_INLINE ~silence() {
            if (watch_ != nullptr) innermost_write_watch = watch_;
        }
        silence(const silence&) = delete;
        silence& operator=(const silence&) = delete;

    private:
        write_watch* watch_;
    };

protected:
    // Watches may end in any order.
    MP_ALWAYS_INLINE ~write_watch() {
        write_watch** it = &innermost_write_watch;
        while (*it != nullptr && *it != this) it = &(*it)->outer_;
        if (*it == this) *it = outer_;
    }

    /// \param added  what was there is part of what is there now
    virtual void written(const void* array, bool added) noexcept = 0;

private:
    write_watch* outer_;
};

}}  // namespace mp::detail
