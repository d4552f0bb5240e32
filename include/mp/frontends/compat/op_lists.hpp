// SPDX-License-Identifier: MIT
/// \file
/// The published op lists of the systems for mixed precision.
#pragma once

#include <mp/frontends/compat/apex/op_lists.hpp>
#include <mp/frontends/compat/keras/op_list.hpp>
#include <mp/frontends/compat/mxnet/op_lists.hpp>
#include <mp/frontends/compat/nvidia.hpp>
#include <mp/frontends/compat/pytorch/op_lists.hpp>
#include <mp/frontends/compat/tensorflow/op_lists.hpp>
#include <mp/nn/autocast/op_list.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A number in the order of versions, by the first two parts; -1 for what is none.
constexpr long long version_number(std::string_view version) {
    long long parts[2] = {-1, -1};
    std::size_t part = 0;
    for (const char character : version) {
        if (character == '.' && parts[part] >= 0) {
            if (++part == 2) break;
        } else if (character >= '0' && character <= '9' && parts[part] < 1'000'000) {
            parts[part] = (parts[part] < 0 ? 0 : parts[part] * 10) + (character - '0');
        } else {
            return -1;
        }
    }
    return parts[0] < 0 || parts[1] < 0 ? -1 : parts[0] * 100'000'000 + parts[1];
}

}}  // namespace mp::detail

namespace mp::autocast::lists {

/// The newest of every list that a system has published, in no particular order; those that cast a model
/// as a whole are not among them.
inline constexpr std::array<const op_list*, 9> all_lists{&pytorch_cuda, &pytorch_cpu,         &pytorch_mps,
                                                         &tensorflow,   &tensorflow_bfloat16, &apex,
                                                         &mxnet,        &mxnet_bfloat16,      &nvidia};

/// Lists of earlier versions of these systems, which have the names of the newer ones.
inline constexpr std::array<const op_list*, 4> earlier_lists{&pytorch_cuda_2_11, &pytorch_cpu_2_11,
                                                             &pytorch_mps_2_5, &tensorflow_2_18};

/// The published list of this name, such as "pytorch_cuda"; a null pointer if there is none.
constexpr const op_list* find_list(std::string_view name) noexcept {
    for (const op_list* list : all_lists) {
        if (list->name == name) return list;
    }
    return nullptr;
}

/// The list of this name as it was in a version of the system, such as "2.11": the newest that is not newer. A null
/// pointer if there is none, or the version is not two numbers with a dot; more numbers behind it do not matter.
///
///     mp::autocast_region region({.cuda = mp::precision::fp16, .list = lists::find_list("pytorch_cuda", "2.11.0")});
constexpr const op_list* find_list(std::string_view name, std::string_view version) noexcept {
    const long long wanted = detail::version_number(version);
    const op_list* found = nullptr;
    long long newest =
        -1;  // not the pointer compared with null, which g++ does not evaluate under -fsanitize=undefined
    const auto consider = [&](const op_list* list) {
        const long long number = detail::version_number(list->version);
        if (list->name != name || number <= newest || number > wanted) return;
        found = list;
        newest = number;
    };
    for (const op_list* list : all_lists) consider(list);
    for (const op_list* list : earlier_lists) consider(list);
    return found;
}

}  // namespace mp::autocast::lists
