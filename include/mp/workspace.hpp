// SPDX-License-Identifier: MIT
/// \file
/// Memory for what an op needs while it runs: casts of its arguments, partial sums.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp {

namespace simt {
class tensor_map_cache;
}

/// A stack of memory that ops take from while they run. An executor names the one that its ops use; ops on a
/// GPU that cast or add up in parts need one, of device memory, and on a CPU it spares them the heap.
///
///     mp::host_workspace workspace;                          // or mp::device_workspace in <mp/cuda.hpp>
///     const mp::cpu exec{.workspace = &workspace};
///     mp::ops::softmax(exec, x, y);
///     std::printf("%zu bytes were enough\n", workspace.high_water());
///
/// This class uses the memory that it is given, and throws argument_error with the size that it should have
/// had when that is too small. host_workspace and device_workspace grow until their first step has passed,
/// and allocate nothing afterwards.
///
/// For one thread at a time, and on a GPU for one stream: what an op gives back is used again by the next one
/// in the order of the stream. Where an op runs products on several threads, each uses for_thread(),
/// which a host_workspace keeps.
class workspace {
public:
    /// Of what is taken, as cudaMalloc's.
    static constexpr std::size_t alignment = 256;

    /// Memory of the caller, which must outlive this object; from its first aligned address on.
    explicit workspace(std::span<std::byte> memory) {
        const std::size_t rest = reinterpret_cast<std::uintptr_t>(memory.data()) % alignment;
        const std::size_t gap = rest == 0 ? 0 : alignment - rest;
        if (gap < memory.size()) blocks_.push_back({memory.data() + gap, memory.size() - gap});
    }
    virtual ~workspace() = default;
    workspace(const workspace&) = delete;
    workspace& operator=(const workspace&) = delete;

    /// Size of an allocation of `bytes` after alignment.
    [[nodiscard]] static constexpr std::size_t aligned_size(std::size_t bytes) {
        return (bytes + alignment - 1) / alignment * alignment;
    }

    /// The workspace of thread `index` of an op, made when it is first asked for; null where there is none for
    /// threads, and they take the heap. To be asked for by the thread that runs the op.
    [[nodiscard]] virtual workspace* for_thread(std::size_t /*index*/) { return nullptr; }

    /// Bytes of memory, without that of threads.
    [[nodiscard]] std::size_t size() const {
        std::size_t sum = 0;
        for (const block& it : blocks_) sum += it.size;
        return sum;
    }
    /// Bytes that are taken now, as aligned_size() counts them.
    [[nodiscard]] std::size_t used() const { return used_; }
    /// The most that have been taken at a time.
    [[nodiscard]] std::size_t high_water() const { return high_water_; }

    /// Uninitialised elements, until the innermost frame ends. Throws argument_error where the memory is too
    /// small and cannot grow.
    template <class Element>
    [[nodiscard]] Element* allocate(std::size_t count) {
        static_assert(std::is_trivially_copyable_v<Element>);
        constexpr std::size_t most = (std::numeric_limits<std::size_t>::max)() / 2;
        if (count > most / sizeof(Element)) {
            detail::throw_argument("mp::workspace::allocate", "count", count, "must fit into memory");
        }
        return reinterpret_cast<Element*>(take(count * sizeof(Element)));
    }

    /// Tensor maps of the stream's products, which are encoded once: see <mp/device/simt/tensor_map.hpp>.
    template <class Cache = simt::tensor_map_cache>
    [[nodiscard]] Cache& tensor_maps() {
        if (tensor_maps_ == nullptr) tensor_maps_ = std::make_shared<Cache>();
        return *tensor_maps_;
    }

    /// Gives back at its end what was taken since its beginning. Frames nest. One of a null pointer does
    /// nothing.
    class [[nodiscard]] frame {
    public:
        /// Begins a frame of this workspace, if there is one.
        [[nodiscard]] constexpr explicit frame(workspace* of) : of_(of) {
            if (of_ != nullptr) open();
        }
        constexpr ~frame() {
            if (of_ != nullptr) close();
        }
        frame(const frame&) = delete;
        frame& operator=(const frame&) = delete;

    private:
        void open() {
            block_ = of_->block_;
            offset_ = of_->offset_;
            used_ = of_->used_;
        }
        void close() const {
            of_->block_ = block_;
            of_->offset_ = offset_;
            of_->used_ = used_;
            if (used_ == 0) of_->join_blocks();
        }

        workspace* of_;
        std::size_t block_ = 0;
        std::size_t offset_ = 0;
        std::size_t used_ = 0;
    };

protected:
    workspace() = default;

    /// `bytes` more bytes, aligned; null where there is no room.
    virtual std::byte* grow(std::size_t /*bytes*/) noexcept { return nullptr; }
    /// Takes back what grow() has returned.
    virtual void release(std::byte* /*memory*/, std::size_t /*bytes*/) noexcept {}
    /// For destructors of classes that grow.
    void release_all() noexcept {
        for (const block& it : blocks_) {
            if (it.grown) release(it.data, it.size);
        }
        blocks_.clear();
    }
    /// Memory from the beginning, so that growing can be spared.
    void reserve(std::size_t bytes) {
        if (bytes != 0) add_block(bytes);
    }

private:
    struct block {
        std::byte* data;
        std::size_t size;
        bool grown = false;
    };

    std::byte* take(std::size_t bytes) {
        bytes = aligned_size(bytes);
        std::size_t index = block_;
        std::size_t offset = offset_;
        while (index < blocks_.size() && bytes > blocks_[index].size - offset) {
            ++index;
            offset = 0;
        }
        if (index == blocks_.size()) add_block(bytes);
        block_ = index;
        offset_ = offset + bytes;
        used_ += bytes;
        if (used_ > high_water_) high_water_ = used_;
        return blocks_[index].data + offset;
    }

    void add_block(std::size_t bytes) {
        blocks_.reserve(blocks_.size() + 1);
        std::byte* const data = grow(bytes);
        if (data == nullptr) {
            detail::throw_argument("mp::workspace::allocate", "size()", size(),
                                   "must be at least " + detail::error_text(used_ + bytes) +
                                       " for what is taken now, and there is no more memory");
        }
        blocks_.push_back({data, bytes, true});
    }

    /// One block in place of those that growing has left, so that everything that was taken fits in a row.
    void join_blocks() {
        if (blocks_.size() < 2) return;
        const std::size_t wanted = high_water_;
        release_all();
        block_ = 0;
        offset_ = 0;
        std::byte* const data = grow(wanted);
        if (data != nullptr) blocks_.push_back({data, wanted, true});  // the capacity is there
    }

    std::vector<block> blocks_;
    std::size_t block_ = 0;
    std::size_t offset_ = 0;
    std::size_t used_ = 0;
    std::size_t high_water_ = 0;
    std::shared_ptr<simt::tensor_map_cache> tensor_maps_;
};

/// A workspace in the memory of the host, for mp::cpu and mp::simulated_gpu.
class host_workspace final : public workspace {
public:
    /// Holds `bytes` from the start.
    explicit host_workspace(std::size_t bytes = 0) { reserve(bytes); }
    ~host_workspace() override { release_all(); }

    [[nodiscard]] workspace* for_thread(std::size_t index) override {
        while (threads_.size() <= index) threads_.push_back(std::make_unique<host_workspace>());
        return threads_[index].get();
    }

private:
    std::byte* grow(std::size_t bytes) noexcept override {
        return static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignment}, std::nothrow));
    }
    void release(std::byte* memory, std::size_t /*bytes*/) noexcept override {
        ::operator delete(memory, std::align_val_t{alignment});
    }

    std::vector<std::unique_ptr<host_workspace>> threads_;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The workspace of an executor; null where it has none.
template <class Executor>
constexpr workspace* workspace_of(const Executor& exec) {
    if constexpr (requires { exec.workspace; }) {
        return exec.workspace;
    } else {
        return nullptr;
    }
}

/// Uninitialised elements from the workspace of an executor, which has to have one.
template <class Element, class Executor>
Element* take_workspace(std::string_view function, const Executor& exec, std::size_t count) {
    workspace* const from = workspace_of(exec);
    if (from == nullptr) {
        throw_argument(function, "exec.workspace", "null",
                       "must be a workspace in the memory of the executor, of at least " +
                           error_text(count * sizeof(Element)) + " bytes");
    }
    return from->template allocate<Element>(count);
}

}}  // namespace mp::detail
