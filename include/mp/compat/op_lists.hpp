// SPDX-License-Identifier: MIT
/// \file
/// The published op lists of the systems for mixed precision.
#pragma once

#include <mp/autocast/op_list.hpp>
#include <mp/compat/apex/op_lists.hpp>
#include <mp/compat/keras/op_list.hpp>
#include <mp/compat/mxnet/op_list.hpp>
#include <mp/compat/mxnet/op_list_bfloat16.hpp>
#include <mp/compat/nvidia.hpp>
#include <mp/compat/pytorch/op_list_cpu.hpp>
#include <mp/compat/pytorch/op_list_cuda.hpp>
#include <mp/compat/pytorch/op_list_mps.hpp>
#include <mp/compat/tensorflow/op_lists.hpp>

#include <array>
#include <string_view>

namespace mp::autocast::lists {

/// Every list that a system has published, in no particular order; those that cast a model
/// as a whole are not among them.
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
