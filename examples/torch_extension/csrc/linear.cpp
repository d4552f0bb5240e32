// SPDX-License-Identifier: MIT
// torch.ops.mp_example.linear: y = x w^T + b with mp's product, for tensors of float, double, half and bfloat16. Sums are in float
// (double for double), every element is rounded once, and the bits are those of any processor and any number of threads.
// mp_linear.py loads this file and gives the op its gradient.
#include <mp/frontends/interop/torch.hpp>
#include <mp/ops.hpp>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <span>
#include <tuple>
#include <type_traits>

namespace {

/// As many threads as torch takes, and sums in one order.
mp::cpu executor() {
    return {.threads = at::get_num_threads(), .products = mp::accumulation::ordered};
}

/// The tensor as a matrix: all dimensions but the last make the rows. Transposed tensors and slices stay where they are; a copy is
/// made of what is no matrix, such as the expanded gradient of a sum.
at::Tensor as_matrix(const at::Tensor& x) {
    TORCH_CHECK(x.is_cpu(), "mp_example::linear: the tensors must be on the CPU");
    TORCH_CHECK(x.dim() >= 1, "mp_example::linear: the tensors must have a dimension");
    const at::Tensor matrix = x.dim() == 2 ? x : x.reshape({-1, x.size(-1)});
    return mp::fits_torch_view(matrix) ? matrix : matrix.contiguous();
}

void check_same_dtype(const at::Tensor& x, const at::Tensor& other, const char* name) {
    TORCH_CHECK(x.scalar_type() == other.scalar_type(), "mp_example::linear: ", name, " is of ",
                other.scalar_type(), "; it must be of ", x.scalar_type(), ", as x is");
}

/// Calls f with the type of the elements. What mp throws are exceptions of the standard library, which torch turns into
/// RuntimeError with their message.
template <class Function>
void for_dtype_of(const at::Tensor& x, Function f) {
    mp::dispatch_torch<float, double, mp::half, mp::bfloat16>(x.scalar_type(), f);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& b) {
    check_same_dtype(x, w, "w");
    if (b) check_same_dtype(x, *b, "b");
    auto sizes = x.sizes().vec();
    const at::Tensor x2 = as_matrix(x);
    const at::Tensor w2 = as_matrix(w);
    sizes.back() = w2.size(0);
    const at::Tensor y = at::empty({x2.size(0), w2.size(0)}, x.options());
    for_dtype_of(x, [&]<class T>(std::type_identity<T>) {
        const auto input = mp::torch_view<const T>(x2);
        const auto weights = mp::torch_view<const T>(w2);
        const auto output = mp::torch_view<T>(y);
        if (b) {
            const at::Tensor bias = b->contiguous();
            mp::ops::linear(executor(), input, weights, mp::torch_span<const T>(bias), output);
        } else {
            mp::ops::linear(executor(), input, weights, mp::ops::absent, output);
        }
    });
    return y.view(sizes);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_backward(const at::Tensor& dy, const at::Tensor& x,
                                                               const at::Tensor& w) {
    check_same_dtype(x, dy, "dy");
    check_same_dtype(x, w, "w");
    const at::Tensor dy2 = as_matrix(dy);
    const at::Tensor x2 = as_matrix(x);
    const at::Tensor w2 = as_matrix(w);
    const at::Tensor dx = at::empty(x2.sizes(), x.options());
    const at::Tensor dw = at::empty(w2.sizes(), w.options());
    const at::Tensor db = at::empty({w2.size(0)}, w.options());
    for_dtype_of(x, [&]<class T>(std::type_identity<T>) {
        mp::ops::linear_backward(executor(), mp::torch_view<const T>(x2), mp::torch_view<const T>(w2),
                                 mp::torch_view<const T>(dy2), mp::torch_view<T>(dx), mp::torch_view<T>(dw),
                                 mp::torch_span<T>(db));
    });
    return {dx.view(x.sizes()), dw, db};
}

}  // namespace

TORCH_LIBRARY(mp_example, library) {
    library.def("linear(Tensor x, Tensor w, Tensor? b) -> Tensor");
    library.def("linear_backward(Tensor dy, Tensor x, Tensor w) -> (Tensor, Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(mp_example, CPU, library) {
    library.impl("linear", &linear);
    library.impl("linear_backward", &linear_backward);
}
