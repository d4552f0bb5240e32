# SPDX-License-Identifier: MIT
"""A linear layer of PyTorch that is computed by mp: compiles csrc/linear.cpp, and gives the op its gradient.

    from mp_linear import Linear
    layer = Linear(256, 64, dtype=torch.bfloat16)
"""

import pathlib

import torch
from torch.utils.cpp_extension import load

here = pathlib.Path(__file__).resolve().parent

load(
    name="mp_example",
    sources=[str(here / "csrc" / "linear.cpp")],
    extra_include_paths=[str(here.parent.parent / "include")],
    extra_cflags=["-std=c++20", "-O2"],
    is_python_module=False,
)

linear = torch.ops.mp_example.linear.default
linear_backward = torch.ops.mp_example.linear_backward.default


# Shapes without numbers, for torch.compile and torch.export.
@torch.library.register_fake("mp_example::linear")
def _(x, w, b):
    return x.new_empty(x.shape[:-1] + w.shape[:1])


@torch.library.register_fake("mp_example::linear_backward")
def _(dy, x, w):
    return torch.empty_like(x, memory_format=torch.contiguous_format), w.new_empty(w.shape), w.new_empty(w.shape[:1])


def _keep(ctx, inputs, output):
    x, w, b = inputs
    ctx.save_for_backward(x, w)
    ctx.has_bias = b is not None


def _backward(ctx, dy):
    dx, dw, db = linear_backward(dy, *ctx.saved_tensors)
    return dx, dw, db if ctx.has_bias else None


torch.library.register_autograd("mp_example::linear", _backward, setup_context=_keep)


class Linear(torch.nn.Linear):
    """torch.nn.Linear with mp's arithmetic."""

    def forward(self, x):
        return linear(x, self.weight, self.bias)
