// SPDX-License-Identifier: MIT
/// \file
/// Fibers: functions, each with a stack, that run on one thread of the operating system and hand over to
/// each other where they say so. On x86-64 a switch is a dozen instructions; elsewhere it is ucontext's.
#pragma once

#include <mp/config.hpp>

#if __has_include(<sys/mman.h>) && __has_include(<unistd.h>)
#include <sys/mman.h>
#include <unistd.h>
#else
#error "mp: the simulated GPU needs stacks from mmap, which only POSIX systems have; Windows does not"
#endif

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>
#include <vector>

// Shadow stacks of the processor do not follow the switch below.
#if defined(__x86_64__) && !defined(_WIN32) && (!defined(__CET__) || (__CET__ & 2) == 0)
#define MP_FIBER_BY_REGISTERS 1
#else
#define MP_FIBER_BY_REGISTERS 0
// musl and Bionic have the header of the functions, but not the functions.
#if __has_include(<ucontext.h>) && !(defined(__linux__) && !defined(__GLIBC__))
#include <ucontext.h>
#else
#error \
    "mp: the simulated GPU needs fibers: build for x86-64, or with a C library that has makecontext, as glibc"
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define MP_FIBER_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MP_FIBER_ADDRESS_SANITIZER 1
#endif
#endif
#if !defined(MP_FIBER_ADDRESS_SANITIZER)
#define MP_FIBER_ADDRESS_SANITIZER 0
#endif
#if MP_FIBER_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Memory for a stack, with a page below it that stops the program when the stack grows into it. Pages are
/// only taken from the system when they are touched.
class fiber_stack {
public:
    explicit fiber_stack(std::size_t bytes) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        bytes_ = (bytes + page - 1) / page * page + page;
        void* const memory =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<unsigned char*>(memory);
        guard_ = page;
        static_cast<void>(mprotect(memory, page, PROT_NONE));
    }
    fiber_stack(fiber_stack&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_), guard_(other.guard_) {}
    fiber_stack& operator=(fiber_stack&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
        std::swap(guard_, other.guard_);
        return *this;
    }
    ~fiber_stack() {
        if (memory_ == nullptr) return;
#if MP_FIBER_ADDRESS_SANITIZER
        // Frames that a fiber has left for good are poisoned still, and others will have the memory.
        ASAN_UNPOISON_MEMORY_REGION(bottom(), size());
#endif
        static_cast<void>(munmap(memory_, bytes_));
    }

    [[nodiscard]] unsigned char* bottom() const { return memory_ + guard_; }
    [[nodiscard]] std::size_t size() const { return bytes_ - guard_; }

private:
    unsigned char* memory_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t guard_ = 0;
};

/// Stacks of one size, handed from fibers that have ended to those that begin: threads that never wait for
/// each other need one in all.
class stack_pool {
public:
    explicit stack_pool(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {}

    fiber_stack take() {
        if (free_.empty()) return fiber_stack(stack_bytes_);
        fiber_stack stack = std::move(free_.back());
        free_.pop_back();
        return stack;
    }
    void give_back(fiber_stack stack) { free_.push_back(std::move(stack)); }

private:
    std::size_t stack_bytes_;
    std::vector<fiber_stack> free_;
};

#if MP_FIBER_BY_REGISTERS

/// Saves the registers that calls preserve, and goes on where `to` was saved.
__attribute__((naked, noinline)) inline void switch_stacks(void** /*from*/, void* /*to*/) {
    asm volatile(
        "pushq %rbp\n\t"
        "pushq %rbx\n\t"
        "pushq %r12\n\t"
        "pushq %r13\n\t"
        "pushq %r14\n\t"
        "pushq %r15\n\t"
        "movq %rsp, (%rdi)\n\t"
        "movq %rsi, %rsp\n\t"
        "popq %r15\n\t"
        "popq %r14\n\t"
        "popq %r13\n\t"
        "popq %r12\n\t"
        "popq %rbx\n\t"
        "popq %rbp\n\t"
        "ret");
}

/// The first thing that runs on a new stack: r13(r12).
__attribute__((naked, noinline)) inline void begin_fiber() {
    asm volatile(
        "movq %r12, %rdi\n\t"
        "callq *%r13\n\t"
        "ud2");
}

#endif

/// A function with a stack, entered by resume() and left by suspend(). Both are called on the same
/// thread of the operating system. The function must not let exceptions out, and a fiber must have come to
/// its end before it is destroyed or started again. It has a stack from its first resume() to its end.
class fiber {
public:
    /// The pool must outlive it.
    explicit fiber(stack_pool& pool) : pool_(&pool) {}

    /// Makes the fiber begin with function(argument) at the next resume().
    void start(void (*function)(void*), void* argument) {
        function_ = function;
        argument_ = argument;
        finished_ = false;
    }

    /// Runs the fiber until it suspends itself or ends.
    void resume() {
        if (!stack_) {
            stack_.emplace(pool_->take());
            prepare();
        }
        enter_stack();
        if (finished_) {
            pool_->give_back(std::move(*stack_));
            stack_.reset();
        }
    }

    /// Called on the fiber: returns to where it was resumed, until it is resumed again.
    void suspend() { leave(false); }

    [[nodiscard]] bool finished() const { return finished_; }

private:
    /// Makes the next switch to the stack call enter().
    void prepare() {
#if MP_FIBER_BY_REGISTERS
        auto* top = reinterpret_cast<std::uintptr_t*>(stack_->bottom() + stack_->size());
        // The function's frame has to begin at a multiple of 16 bytes below its return address, which the
        // call in begin_fiber pushes.
        *--top = 0;
        *--top = 0;
        *--top = reinterpret_cast<std::uintptr_t>(&begin_fiber);
        *--top = 0;                                                // rbp
        *--top = 0;                                                // rbx
        *--top = reinterpret_cast<std::uintptr_t>(this);           // r12
        *--top = reinterpret_cast<std::uintptr_t>(&fiber::enter);  // r13
        *--top = 0;                                                // r14
        *--top = 0;                                                // r15
        own_ = top;
#else
        static_cast<void>(getcontext(&own_));
        own_.uc_stack.ss_sp = stack_->bottom();
        own_.uc_stack.ss_size = stack_->size();
        own_.uc_link = nullptr;
        const auto address = reinterpret_cast<std::uintptr_t>(this);
        makecontext(&own_, reinterpret_cast<void (*)()>(&fiber::enter_halves), 2,
                    static_cast<unsigned>(address & 0xFFFF'FFFFU),
                    static_cast<unsigned>(static_cast<std::uint64_t>(address) >> 32));
#endif
    }

    void enter_stack() {
#if MP_FIBER_ADDRESS_SANITIZER
        void* fake = nullptr;
        __sanitizer_start_switch_fiber(&fake, stack_->bottom(), stack_->size());
#endif
#if MP_FIBER_BY_REGISTERS
        switch_stacks(&caller_, own_);
#else
        static_cast<void>(swapcontext(&caller_, &own_));
#endif
#if MP_FIBER_ADDRESS_SANITIZER
        __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    }

    static void enter(void* self) {
        auto& it = *static_cast<fiber*>(self);
#if MP_FIBER_ADDRESS_SANITIZER
        __sanitizer_finish_switch_fiber(nullptr, &it.caller_bottom_, &it.caller_size_);
#endif
        it.function_(it.argument_);
        it.finished_ = true;
        it.leave(true);
    }
#if !MP_FIBER_BY_REGISTERS
    static void enter_halves(unsigned low, unsigned high) {
        enter(reinterpret_cast<void*>(static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low)));
    }
#endif

    void leave([[maybe_unused]] bool for_good) {
#if MP_FIBER_ADDRESS_SANITIZER
        void* fake = nullptr;
        __sanitizer_start_switch_fiber(for_good ? nullptr : &fake, caller_bottom_, caller_size_);
#endif
#if MP_FIBER_BY_REGISTERS
        switch_stacks(&own_, caller_);
#else
        static_cast<void>(swapcontext(&own_, &caller_));
#endif
#if MP_FIBER_ADDRESS_SANITIZER
        __sanitizer_finish_switch_fiber(fake, &caller_bottom_, &caller_size_);
#endif
    }

    stack_pool* pool_;
    std::optional<fiber_stack> stack_;
    void (*function_)(void*) = nullptr;
    void* argument_ = nullptr;
    bool finished_ = true;
#if MP_FIBER_BY_REGISTERS
    void* own_ = nullptr;
    void* caller_ = nullptr;
#else
    ucontext_t own_ = {};
    ucontext_t caller_ = {};
#endif
#if MP_FIBER_ADDRESS_SANITIZER
    const void* caller_bottom_ = nullptr;
    std::size_t caller_size_ = 0;
#endif
};

}}  // namespace mp::simt::detail

#undef MP_FIBER_BY_REGISTERS
#undef MP_FIBER_ADDRESS_SANITIZER
