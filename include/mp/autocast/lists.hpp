// SPDX-License-Identifier: MIT
/// \file
/// The published op lists of the systems for mixed precision, each a file in lists/.
#pragma once

#include <mp/autocast/lists/apex.hpp>
#include <mp/autocast/lists/mxnet.hpp>
#include <mp/autocast/lists/mxnet_bfloat16.hpp>
#include <mp/autocast/lists/nvidia.hpp>
#include <mp/autocast/lists/pytorch_cpu.hpp>
#include <mp/autocast/lists/pytorch_cuda.hpp>
#include <mp/autocast/lists/pytorch_mps.hpp>
#include <mp/autocast/lists/tensorflow.hpp>
#include <mp/autocast/lists/whole_model.hpp>
#include <mp/autocast/op_list.hpp>

#include <array>
#include <string_view>

namespace mp::autocast::lists {

/// Every list that a system has published, in no particular order; those of whole_model.hpp are not among
/// them.
inline constexpr std::array<const op_list*, 9> all_lists{&pytorch_cuda, &pytorch_cpu,         &pytorch_mps,
                                                         &tensorflow,   &tensorflow_bfloat16, &apex,
                                                         &mxnet,        &mxnet_bfloat16,      &nvidia};

/// The published list of this name, such as "pytorch_cuda"; a null pointer if there is none.
constexpr const op_list* find_list(std::string_view name) noexcept {
    for (const op_list* list : all_lists) {
        if (list->name == name) return list;
    }
    return nullptr;
}

}  // namespace mp::autocast::lists
