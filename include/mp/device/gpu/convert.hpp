// SPDX-License-Identifier: MIT
/// \file
/// Conversion of whole arrays, and of lists of them, on a GPU.
#pragma once

#include <mp/arrays/convert/convert.hpp>
#include <mp/base/argument_checks.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/convert_chunks.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp {

/// Numbers in device memory, and where they go in another format.
template <class From, class To>
struct gpu_conversion {
    std::span<const From> from = {};
    std::span<To> to = {};  ///< as many values
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The arrays of a conversion; for stochastic rounding also the number of the first element among all.
template <class From, class To, class Conversion>
struct conversion_arrays {
    const From* from;
    To* to;

    [[nodiscard]] MP_HOST_DEVICE constexpr std::uint64_t number_of(std::size_t index) const { return index; }
};
template <class From, class To>
struct conversion_arrays<From, To, stochastic_conversion> {
    const From* from;
    To* to;
    std::uint64_t first_number;

    [[nodiscard]] MP_HOST_DEVICE constexpr std::uint64_t number_of(std::size_t index) const {
        return first_number + index;
    }
};

template <class From, class To, class Conversion>
struct convert_work : tensor_work {
    using arrays = conversion_arrays<From, To, Conversion>;
    static constexpr int count = chunk_count<From, To>;
    static constexpr int in_flight = Conversion::in_flight;

    Conversion conversion;

    struct thread_data : loads_one_array<From> {
        bool active;
        Conversion conversion;

        MP_ANY_EXECUTION_SPACE
        template <int Count, class Thread>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void finish(const Thread& thread, const tensor_entry<arrays>& tensor,
                                                    std::size_t index, const chunk<From, Count>& from,
                                                    int) const {
            thread.store(chunk_at<Count>(tensor.arrays.to + index),
                         conversion.template convert<To, Count>(from, tensor.arrays.number_of(index)));
        }
    };

    [[nodiscard]] static chunk_split split(const arrays& of, std::size_t size) {
        return split_together<count>(size, of.from, of.to);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE thread_data begin(const Thread&) const {
        return {{}, true, conversion};
    }
};

/// Runs a conversion over arrays: `describe(i, arrays, size)` sets the addresses and the size of number i.
template <class From, class To, class Executor, class Conversion, class Describe>
void run_conversion(std::string_view function, const Executor& exec, const Conversion& conversion,
                    std::size_t count, Describe describe) {
    run_over_tensors(function, exec, convert_work<From, To, Conversion>{{}, conversion}, count, describe);
}

/// Picks the conversion that knows most about a projection, and runs it.
template <class From, class To, class Executor, class Describe>
void convert_arrays_in(const projection& p, std::string_view function, const Executor& exec,
                       std::size_t count, Describe describe) {
    if constexpr (!std::is_same_v<From, To> && (reduced<From> || reduced<To>)) {
        const bool is_exact =
            widens_exactly<From, To> && p.saturate != saturation::finite && p.nan == nan_propagation::keep;
        if (p == projection{} || is_exact) {
            return run_conversion<From, To>(function, exec, nearest_conversion{}, count, describe);
        }
        if constexpr (comes_in_pairs<From> && comes_in_pairs<To> && reduced<To>) {
            if (p.round == rounding::nearest_even) {
                return run_conversion<From, To>(function, exec, nearest_even_conversion{p}, count, describe);
            }
        }
    }
    run_conversion<From, To>(function, exec, any_conversion{p}, count, describe);
}

/// Throws unless the projection rounds stochastically and `size` elements from `first_index` on can be
/// numbered.
inline void check_stochastic(std::string_view function, const projection& p, std::uint64_t first_index,
                             std::uint64_t size) {
    if (!is_stochastic(p.round)) {
        throw_argument(function, "p.round", static_cast<int>(p.round),
                       "must be stochastic_a, stochastic_b or stochastic_c");
    }
    if (size != 0 && first_index > (std::numeric_limits<std::uint64_t>::max)() - (size - 1)) {
        throw_argument(function, "first_index", first_index,
                       "must be small enough for the last element to have a number below 2^64");
    }
}

/// The types of the numbers of an item with spans `from` and `to`.
template <class Item>
using converted_from = std::remove_const_t<contiguous_element<decltype(std::declval<const Item&>().from)>>;
template <class Item>
using converted_to = contiguous_element<decltype(std::declval<const Item&>().to)>;

/// A contiguous range of items with spans `from` and `to`: gpu_conversion, or your own.
template <class List>
concept array_pair_list = contiguous<List> && requires(const std::remove_cv_t<contiguous_element<List>>& it) {
    { it.from.size() } -> std::convertible_to<std::size_t>;
    { it.to.size() } -> std::convertible_to<std::size_t>;
    requires number<converted_from<std::remove_cv_t<contiguous_element<List>>>>;
    requires number<converted_to<std::remove_cv_t<contiguous_element<List>>>>;
    requires !std::is_const_v<converted_to<std::remove_cv_t<contiguous_element<List>>>>;
};

/// Throws unless all pairs of arrays can be converted; the number of elements of all.
template <class Item>
std::uint64_t check_array_pairs(std::string_view function, std::span<Item> list) {
    using from_type = converted_from<std::remove_cv_t<Item>>;
    using to_type = converted_to<std::remove_cv_t<Item>>;
    std::uint64_t elements = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::span<const from_type> from = list[i].from;
        const std::span<to_type> to = list[i].to;
        require_memory(function, tensor_text("arrays", i, "from.data()"), from.data(), from.size());
        require_memory(function, tensor_text("arrays", i, "to.data()"), to.data(), to.size());
        check_tensor_size(function, tensor_text("arrays", i, "from.size()"), from.size());
        check_arrays(function, from, to);
        elements += from.size();
    }
    return elements;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Converts an array of numbers in device memory to another type, element by element: the bits of mp::convert
/// on a CPU, NaN included.
///
/// `from` and `to` are device_buffers or spans of device memory, of any number types, with the same number of
/// elements, aligned as their type is. Wherever both are at the beginning of 16 bytes for the same element,
/// all but a few elements at the ends move in accesses of 16 bytes of the wider type. Nothing waits and
/// nothing is allocated. Nearest even is the fastest, with any saturation: two numbers at a time where the
/// device has instructions for that.
///
///     mp::convert(stream, master_weights, half_weights);
///
/// \param exec  mp::cuda_stream or mp::simulated_gpu
/// \param p     with a stochastic rounding all elements have the same random bits; see convert_stochastic
/// \throws argument_error  with nothing enqueued: the sizes differ, a range is null but not empty, or the
///                         ranges overlap
/// \throws cuda_error  the launch failed
template <gpu_executor Executor, detail::number_range Source, detail::writable_number_range Target>
void convert(const Executor& exec, const Source& from, Target&& to, projection p = {}) {
    using from_type = std::remove_cv_t<detail::contiguous_element<const Source>>;
    using to_type = detail::contiguous_element<Target>;
    const std::span<const from_type> source = detail::as_span(from);
    const std::span<to_type> target = detail::as_span(to);
    constexpr std::string_view function = "mp::convert";
    detail::check_arrays(function, source, target);
    detail::check_tensor_size(function, "from.size()", source.size());
    detail::convert_arrays_in<from_type, to_type>(p, function, exec, 1,
                                                  [&](std::size_t, auto& arrays, std::size_t& size) {
                                                      arrays = {source.data(), target.data()};
                                                      size = source.size();
                                                  });
}

/// Overload for a list of arrays of different sizes, in one launch for every hundred of them.
///
///     const std::vector<mp::gpu_conversion<float, mp::half>> list{{master_1, w1}, {master_2, w2}};
///     mp::convert(stream, list);
///
/// \param arrays  contiguous range of gpu_conversion, or anything else with spans `from` and `to` of device
///                memory; the host's, and read before this returns. No array that is written may overlap
///                another one
template <gpu_executor Executor, detail::array_pair_list List>
void convert(const Executor& exec, const List& arrays, projection p = {}) {
    using item = std::remove_cv_t<detail::contiguous_element<const List>>;
    constexpr std::string_view function = "mp::convert";
    const auto list = detail::as_span(arrays);
    static_cast<void>(detail::check_array_pairs(function, list));
    detail::convert_arrays_in<detail::converted_from<item>, detail::converted_to<item>>(
        p, function, exec, list.size(), [&](std::size_t i, auto& pointers, std::size_t& size) {
            pointers = {list[i].from.data(), list[i].to.data()};
            size = list[i].from.size();
        });
}

/// Rounds an array in device memory stochastically with separate random bits for each element: to[i] =
/// round_to<To>(from[i], q) where q is p with q.random = random_bits(seed, first_index + i). The bits of
/// convert_stochastic on a CPU, whatever the schedule and the device; a large array may be converted in
/// parts, each with the index of its first element.
///
/// `p` chooses among the kinds of stochastic rounding, the number of random bits and the rest; p.random is
/// not looked at. The seed and the index go into the launch: a graph that is replayed repeats them.
///
///     mp::convert_stochastic(stream, weights, copy, seed, step * weights.size());
///
/// \throws argument_error  what mp::convert throws; p.round is not stochastic; the number of an element would
///                         be 2^64 or more
/// \throws cuda_error  the launch failed
template <gpu_executor Executor, detail::number_range Source, detail::writable_number_range Target>
void convert_stochastic(const Executor& exec, const Source& from, Target&& to, std::uint64_t seed,
                        std::uint64_t first_index = 0, projection p = stochastic(0)) {
    using from_type = std::remove_cv_t<detail::contiguous_element<const Source>>;
    using to_type = detail::contiguous_element<Target>;
    const std::span<const from_type> source = detail::as_span(from);
    const std::span<to_type> target = detail::as_span(to);
    constexpr std::string_view function = "mp::convert_stochastic";
    detail::check_arrays(function, source, target);
    detail::check_tensor_size(function, "from.size()", source.size());
    detail::check_stochastic(function, p, first_index, source.size());
    detail::run_conversion<from_type, to_type>(function, exec, detail::stochastic_conversion{p, seed}, 1,
                                               [&](std::size_t, auto& arrays, std::size_t& size) {
                                                   arrays = {source.data(), target.data(), first_index};
                                                   size = source.size();
                                               });
}

/// Overload for a list of arrays, whose elements are numbered through: the first one of an array follows the
/// last one of the array before. So the bits are those of one array that is as long as all together.
///
/// \param arrays  see convert
template <gpu_executor Executor, detail::array_pair_list List>
void convert_stochastic(const Executor& exec, const List& arrays, std::uint64_t seed,
                        std::uint64_t first_index = 0, projection p = stochastic(0)) {
    using item = std::remove_cv_t<detail::contiguous_element<const List>>;
    constexpr std::string_view function = "mp::convert_stochastic";
    const auto list = detail::as_span(arrays);
    const std::uint64_t elements = detail::check_array_pairs(function, list);
    detail::check_stochastic(function, p, first_index, elements);
    std::uint64_t number = first_index;
    detail::run_conversion<detail::converted_from<item>, detail::converted_to<item>>(
        function, exec, detail::stochastic_conversion{p, seed}, list.size(),
        [&](std::size_t i, auto& pointers, std::size_t& size) {
            pointers = {list[i].from.data(), list[i].to.data(), number};
            size = list[i].from.size();
            number += size;
        });
}

}}  // namespace mp
