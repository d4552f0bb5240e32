// SPDX-License-Identifier: MIT
/// \file
/// Parameters of an optimizer, named arrays of weights with their gradients; and many arrays as one stretch of work, shared
/// among threads so that where an array is cut never changes a result.
#pragma once

#include <mp/base/buffer_version.hpp>
#include <mp/base/parallel.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp {

/// One array of weights and its gradient, both in memory that the caller owns and keeps alive and in place.
///
/// \tparam Weight    type of the weights that the forward pass uses
/// \tparam Gradient  type in which the backward pass leaves the gradient, often the same
template <class Weight, class Gradient = Weight>
struct parameter {
    std::string name = {};              ///< for messages, such as "layer1.weight"; may be empty
    std::span<Weight> weights = {};     ///< written by every step
    std::span<Gradient> gradient = {};  ///< as many values as weights, or none: the array is then not trained
    std::size_t group = 0;              ///< whose options it is trained with, see mp::optimizer
    std::size_t rows = 0;  ///< of the weights as a matrix, row after row, for mp::adafactor; 0: a vector
    /// Where a rank has a share of the parameter, maybe none of it: the first element of the share, and the
    /// elements of the whole; 0 if this is the whole. See mp::sharded_optimizer.
    std::size_t share_first = 0;
    std::size_t share_of = 0;
    /// Advanced by every step and by all else of the library that writes the weights. Casts kept by
    /// mp::autocast::cached(weights, version), 8-bit codes and master weights follow it. Call its changed()
    /// after writing the weights by other means.
    buffer_version version{};

    /// Whether an optimizer trains it, here or on other ranks.
    [[nodiscard]] bool trained() const noexcept { return !gradient.empty() || share_of != 0; }
};

namespace detail { inline namespace MP_CORE_NAMESPACE {

/// An array of weights and its gradient without their types; see mp::parameter.
struct untyped_parameter {
    std::string_view name;
    void* weights;
    void* gradient;
    std::size_t size;
    std::size_t gradient_size;
    std::size_t group;
    std::size_t rows;
    std::size_t share_first;
    std::size_t share_of;
    buffer_version version;

    [[nodiscard]] MP_ALWAYS_INLINE bool trained() const noexcept {
        return gradient_size != 0 || share_of != 0;
    }
};

/// Formats the text by which messages refer to a parameter: its index and, if there is one, its name.
MP_CORE_FUNCTION std::string parameter_text(std::size_t index, std::string_view name,
                                            std::string_view member);

/// Throws argument_error in the name of `function` unless the parameters are fit for training: there is one,
/// none is null with a size, gradients have the size of their weights, and no two arrays overlap. Elements have these
/// sizes.
MP_CORE_FUNCTION void check_parameters(std::string_view function,
                                       std::span<const untyped_parameter> parameters, std::size_t weight_size,
                                       std::size_t gradient_size);

}}  // namespace detail

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// The parameters without their types; the names are those of `parameters`.
template <class Weight, class Gradient>
std::vector<untyped_parameter> untyped_parameters_of(
    const std::vector<parameter<Weight, Gradient>>& parameters) {
    std::vector<untyped_parameter> result;
    result.reserve(parameters.size());
    for (const parameter<Weight, Gradient>& it : parameters) {
        result.push_back({it.name, it.weights.data(), it.gradient.data(), it.weights.size(),
                          it.gradient.size(), it.group, it.rows, it.share_first, it.share_of, it.version});
    }
    return result;
}

}}  // namespace detail
}  // namespace mp

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION std::string parameter_text(std::size_t index, std::string_view name,
                                            std::string_view member) {
    std::string text = "parameters[" + error_text(index) + "]";
    if (!name.empty()) text.append(" ('").append(name).append("')");
    return text.append(".").append(member);
}

MP_CORE_FUNCTION void check_parameters(std::string_view function,
                                       std::span<const untyped_parameter> parameters, std::size_t weight_size,
                                       std::size_t gradient_size) {
    if (parameters.empty()) {
        throw_argument(function, "parameters.size()", parameters.size(), "must be at least 1");
    }
    struct memory {
        std::uintptr_t begin;
        std::uintptr_t end;
        std::size_t index;
        std::string_view member;
    };
    std::vector<memory> arrays;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const untyped_parameter& it = parameters[i];
        const auto add = [&](const void* data, std::size_t size, std::size_t bytes, std::string_view member) {
            if (size == 0) return;
            if (data == nullptr) {
                require_memory(function, parameter_text(i, it.name, member) + ".data()", data, size);
            }
            const auto begin = reinterpret_cast<std::uintptr_t>(data);
            arrays.push_back({begin, begin + bytes, i, member});
        };
        add(it.weights, it.size, it.size * weight_size, "weights");
        add(it.gradient, it.gradient_size, it.gradient_size * gradient_size, "gradient");
        if (it.gradient_size != 0 && it.gradient_size != it.size) {
            throw_argument(function, parameter_text(i, it.name, "gradient.size()"), it.gradient_size,
                           "must be 0 or equal the number of weights, which is " + error_text(it.size));
        }
    }
    std::sort(arrays.begin(), arrays.end(),
              [](const memory& left, const memory& right) { return left.begin < right.begin; });
    for (std::size_t i = 1; i < arrays.size(); ++i) {
        const memory& first = arrays[i - 1];
        const memory& second = arrays[i];
        if (second.begin < first.end) {
            throw_joined<argument_error>(
                {function, ": ", parameter_text(first.index, parameters[first.index].name, first.member),
                 " and ", parameter_text(second.index, parameters[second.index].name, second.member),
                 " overlap; every array must have memory of its own"});
        }
    }
}

}}  // namespace mp::detail
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The sizes of the arrays of an optimizer, and where each would begin if they lay one after the other.
class parameter_layout {
public:
    /// Arrays are cut only at multiples of this many elements: whole groups of random bits, whole blocks of a
    /// sum, and no cache line with two writers in arrays that begin on one.
    static constexpr std::size_t chunk = 4096;

    parameter_layout() = default;
    /// The other layout is then empty.
    MP_ALWAYS_INLINE parameter_layout(parameter_layout&& other) noexcept { swap(other); }
    MP_ALWAYS_INLINE parameter_layout& operator=(parameter_layout&& other) noexcept {
        parameter_layout moved(std::move(other));
        swap(moved);
        return *this;
    }
    parameter_layout(const parameter_layout&) = default;
    parameter_layout& operator=(const parameter_layout&) = default;
    ~parameter_layout() = default;

    /// Appends an array.
    MP_ALWAYS_INLINE void add(std::size_t size) {
        offsets_.push_back(total_);
        first_chunks_.push_back(chunks_);
        total_ += size;
        chunks_ += (size + chunk - 1) / chunk;
    }

    [[nodiscard]] MP_ALWAYS_INLINE std::size_t total() const noexcept { return total_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t offset(std::size_t array) const noexcept {
        return offsets_[array];
    }

    /// Chunks of all arrays, and the number of the first one of an array.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t chunks() const noexcept { return chunks_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t first_chunk(std::size_t array) const noexcept {
        return first_chunks_[array];
    }

    /// The array in which element `at` < total() of them all lies.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t array_at(std::size_t at) const noexcept {
        const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), at);
        return static_cast<std::size_t>(after - offsets_.begin()) - 1;
    }

    /// Calls f(array, first, last) on chunks [first, last), none of them empty, that cover all arrays: in
    /// order, or on several threads if each gets `grain` elements or more.
    template <class Function>
    void for_each_chunk(cpu exec, std::size_t grain, Function&& f) const {
        const auto cut = [this](std::size_t at) {
            if (at >= total_) return total_;
            const std::size_t begin = offsets_[array_at(at)];
            return begin + (at - begin) / chunk * chunk;
        };
        parallel_for(exec, total_, grain, [&](std::size_t begin, std::size_t end) {
            begin = cut(begin);
            end = cut(end);
            if (begin == end) return;
            for (std::size_t i = array_at(begin); i < offsets_.size() && offsets_[i] < end; ++i) {
                const std::size_t array_end = i + 1 < offsets_.size() ? offsets_[i + 1] : total_;
                const std::size_t first = (std::max)(begin, offsets_[i]);
                const std::size_t last = (std::min)(end, array_end);
                if (first < last) f(i, first - offsets_[i], last - offsets_[i]);
            }
        });
    }

private:
    MP_ALWAYS_INLINE void swap(parameter_layout& other) noexcept {
        offsets_.swap(other.offsets_);
        first_chunks_.swap(other.first_chunks_);
        std::swap(total_, other.total_);
        std::swap(chunks_, other.chunks_);
    }

    std::vector<std::size_t> offsets_;
    std::vector<std::size_t> first_chunks_;
    std::size_t total_ = 0;
    std::size_t chunks_ = 0;
};

}}  // namespace mp::detail
