// SPDX-License-Identifier: MIT
/// \file
/// Memory of a layer for the time of one call.
#pragma once

#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/train/training/tensor.hpp>
#include <mp/workspace.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// An uninitialised row-major matrix from the executor's workspace, given back at the end; allocated
/// where it has none.
template <class Element>
class layer_scratch {
public:
    template <executor Executor>
    layer_scratch(const Executor& exec, std::ptrdiff_t rows, std::ptrdiff_t columns)
        : frame_(exec.workspace) {
        if (exec.workspace == nullptr) {
            own_.resize(exec, rows, columns);
            view_ = own_.view();
        } else {
            const std::size_t count = checked_element_count("mp::layers", rows, columns, sizeof(Element));
            view_ = row_major(exec.workspace->template allocate<Element>(count), rows, columns);
        }
    }
    [[nodiscard]] matrix_view<Element> view() const { return view_; }

private:
    workspace::frame frame_;
    tensor<Element> own_;
    matrix_view<Element> view_;
};

}}  // namespace mp::detail
