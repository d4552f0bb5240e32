// SPDX-License-Identifier: MIT
/// \file
/// Element-wise work on a list of tensors of different sizes in one launch: the addresses and sizes of as
/// many tensors as fit go to the device as the parameter of the launch. More tensors take more launches.
///
/// A tensor is cut into tiles, each as much as a block of threads does at a time. Blocks are numbered
/// through over all tiles of all tensors, and find theirs by bisection, so that a tensor of any size costs
/// one entry of the table.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// One tensor of a list.
template <class Arrays>
struct tensor_entry {
    static constexpr std::uint32_t no_chunks = 0xffff'ffffU;

    Arrays arrays;             ///< addresses
    std::uint64_t size;        ///< elements of each
    std::uint32_t number;      ///< of the tensor in the whole list
    std::uint32_t head;        ///< elements before the first chunk, or no_chunks
    std::uint32_t first_tile;  ///< number of its first tile among all of the launch

    template <int Count>
    [[nodiscard]] MP_HOST_DEVICE constexpr chunk_split split() const {
        if (head == no_chunks) return {size, 0, size};
        return {head, (size - head) / Count, size};
    }
};

static_assert(sizeof(std::size_t) == 8, "mp: tensors on GPUs need a host whose addresses have 64 bits");

/// Largest size of a tensor, so that its tiles can be counted; no device's memory holds it.
inline constexpr std::size_t most_tensor_values = static_cast<std::size_t>(1ull << 40);

/// Returns the last of `count` entries, at least one, whose first tile or block, the member First, is at most `number`.
template <auto First, class Entry>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE const Entry& entry_at(const Entry* list, std::uint32_t count,
                                                                    std::uint32_t number) {
    std::uint32_t low = 0;
    std::uint32_t high = count;
    while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        if (list[middle].*First <= number) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return list[low];
}

/// Members of a Work with their usual values, to derive from.
struct tensor_work {
    static constexpr int in_flight = chunks_in_flight;
    static constexpr bool interleaved = false;
    static constexpr int resident_blocks = 1;
    static constexpr std::uint32_t most_blocks = 1U << 30;

    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Data>
    MP_HOST_DEVICE void end(const Thread& /*thread*/, const Data& /*data*/,
                            unsigned long long /*elements*/) const {}
};

/// Base of the Data of a Work that loads the elements of one array, `from`.
template <class Value>
struct loads_one_array {
    template <int Count>
    using operands = chunk<Value, Count>;

    MP_ANY_EXECUTION_SPACE
    template <int Count, class Thread, class Arrays>
    MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<Value, Count> load(const Thread& thread,
                                                             const tensor_entry<Arrays>& tensor,
                                                             std::size_t index) const {
        return thread.load(chunk_at<Count>(tensor.arrays.from + index));
    }
};

/// The kernel of a Work, which is trivially copyable and says what to do:
///  - `arrays`: the addresses of one tensor; `split(arrays, size)`: how to go through it;
///  - `count`: elements of a chunk; `in_flight`: chunks that a thread loads before it looks at the first one;
///  - `resident_blocks`: see simt::kernel;
///  - `most_blocks`: of a launch; blocks do several tiles where there are more of them;
///  - `interleaved`: whether a thread's chunks are four chunks apart, so that four neighbouring threads have
///    sixteen neighbouring chunks if four are in flight, or as far apart as there are threads;
///  - `begin(thread)`: what a thread keeps while it works, Data, whose `active` says whether there is
///    anything to do at all, the same for all threads; and `end(thread, data, elements)`, where `elements`
///    is the number of elements of the launch. All threads come to both.
///
/// Data has `operands<Count>`, what is loaded for Count elements; `load<Count>(thread, tensor, index)`;
/// and `finish<Count>(thread, tensor, index, operands, i)`, which calculates and stores, for the i-th of the
/// chunks that the thread has in flight.
template <class Work>
struct tensor_list_kernel {
    using entry = tensor_entry<typename Work::arrays>;
    static constexpr int threads = 256;
    static constexpr int resident_blocks = Work::resident_blocks;
    /// Chunks, or single elements, of a tile.
    static constexpr std::size_t tile = std::size_t{threads} * Work::in_flight;
    /// What fits into the 4 KiB of a launch's parameter.
    static constexpr std::size_t capacity = (4096 - sizeof(Work) - 32) / sizeof(entry);

    Work work;
    std::uint64_t elements = 0;
    std::uint32_t tensors = 0;
    std::uint32_t tiles = 0;
    entry list[capacity];

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        auto data = work.begin(thread);
        if (data.active) {
            for (std::uint32_t i = static_cast<std::uint32_t>(thread.block()); i < tiles;
                 i += static_cast<std::uint32_t>(thread.blocks())) {
                const entry& tensor = entry_at<&entry::first_tile>(list, tensors, i);
                const chunk_split split = tensor.template split<Work::count>();
                const std::size_t first = std::size_t{i - tensor.first_tile} * tile;
                visit<Work::count>(thread, data, tensor, split, first, split.chunks);
                visit<1>(thread, data, tensor, split, first, split.template singles<Work::count>());
            }
        }
        work.end(thread, data, elements);
    }

private:
    /// A thread's chunks of `Width` elements of those from number `first` on, of which there are `end` in the
    /// tensor; with a width of 1 these are the elements outside of chunks.
    MP_ANY_EXECUTION_SPACE
    template <int Width, class Thread, class Data>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void visit(const Thread& thread, Data& data, const entry& tensor,
                                                      const chunk_split& split, std::size_t first,
                                                      std::size_t end) {
        if (first >= end) return;
        using operands = typename Data::template operands<Width>;
        operands loaded[Work::in_flight] = {};
        MP_UNROLL
        for (int i = 0; i < Work::in_flight; ++i) {
            const std::size_t number = first + static_cast<std::size_t>(turn<Width>(thread.index(), i));
            if (number < end) {
                loaded[i] = data.template load<Width>(thread, tensor, index_of<Width>(split, number));
            }
        }
        MP_UNROLL
        for (int i = 0; i < Work::in_flight; ++i) {
            const std::size_t number = first + static_cast<std::size_t>(turn<Width>(thread.index(), i));
            if (number < end) {
                data.template finish<Width>(thread, tensor, index_of<Width>(split, number), loaded[i], i);
            }
        }
    }

    /// Index of the i-th chunk of a thread in its tile. In either way a warp's accesses are whole sectors.
    template <int Width>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static int turn(int thread, int i) {
        constexpr int together = 4;
        if constexpr (Work::interleaved && Width != 1) {
            return thread / together * (together * Work::in_flight) + i * together + thread % together;
        } else {
            return i * threads + thread;
        }
    }

    template <int Width>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static std::size_t index_of(const chunk_split& split,
                                                                              std::size_t number) {
        if constexpr (Width == 1) {
            return split.template single<Work::count>(number);
        } else {
            return split.head + number * Width;
        }
    }
};

/// Runs a Work over tensors: `describe(i, arrays, size)` sets the addresses and the size of tensor i. Empty
/// ones are left out. Throws what the launch throws; sizes must have been checked.
template <class Executor, class Work, class Describe>
void run_over_tensors(std::string_view function, const Executor& exec, const Work& work, std::size_t tensors,
                      Describe describe) {
    using kernel = tensor_list_kernel<Work>;
    static_assert(simt::kernel<kernel>, "mp: the table of tensors goes to the device with the launch");
    kernel parameters{};
    parameters.work = work;
    const auto flush = [&] {
        if (parameters.tensors == 0) return;
        const auto blocks = (std::min<std::uint32_t>)(parameters.tiles, Work::most_blocks);
        launch(function, exec, simt::launch_size{.blocks = static_cast<std::ptrdiff_t>(blocks)}, parameters);
        parameters.tensors = 0;
        parameters.tiles = 0;
        parameters.elements = 0;
    };
    for (std::size_t i = 0; i < tensors; ++i) {
        typename Work::arrays arrays{};
        std::size_t size = 0;
        describe(i, arrays, size);
        if (size == 0) continue;
        const chunk_split split = Work::split(arrays, size);
        const std::size_t items = (std::max)(split.chunks, split.template singles<Work::count>());
        const std::size_t tiles = (items + kernel::tile - 1) / kernel::tile;
        if (parameters.tensors == kernel::capacity || parameters.tiles + tiles > (std::size_t{1} << 30)) {
            flush();
        }
        const std::uint32_t head = split.chunks == 0 ? tensor_entry<typename Work::arrays>::no_chunks
                                                     : static_cast<std::uint32_t>(split.head);
        parameters.list[parameters.tensors] = {arrays, size, static_cast<std::uint32_t>(i), head,
                                               parameters.tiles};
        ++parameters.tensors;
        parameters.tiles += static_cast<std::uint32_t>(tiles);
        parameters.elements += size;
    }
    flush();
}

/// "list[3].member", for messages.
inline std::string tensor_text(std::string_view list, std::size_t index, std::string_view member) {
    std::string text(list);
    text.append("[").append(error_text(index)).append("].").append(member);
    return text;
}

/// Throws unless a tensor's size is one that a launch takes.
inline void check_tensor_size(std::string_view function, std::string_view argument, std::size_t size) {
    if (size > most_tensor_values) throw_argument(function, argument, size, "must be at most 2^40");
}

}}  // namespace mp::detail
