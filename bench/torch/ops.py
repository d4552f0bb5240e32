#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The ops of a transformer on one core, beside torch's in one process, by turns.

    python3 bench/torch/ops.py                     # as this processor is
    python3 bench/torch/ops.py --isa avx2          # as on one with AVX2 alone
    python3 bench/torch/ops.py --only gelu --rounds 101

Needs torch (`pip install torch`) and g++. Compiles bench/torch/ops.cpp with plain -O2, lets mp and torch take turns,
and prints a table in Markdown: medians in microseconds of the thread's processor time, which other programs on the
same processor disturb less, and mp's time as a multiple of torch's. Backward passes of
torch are given what its forward passes save (log_softmax, for instance, where mp reads the logits again). Below, mp alone: which part of a step in float8 is
quantisation.
"""
import argparse
import ctypes
import os
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS, COLUMNS, HIDDEN, VOCABULARY = 2048, 128, 512, 256
HEADS, LENGTH, HEAD_SIZE = 64, 128, 32


def torch_ops():
    """name -> function, with the names of ops.cpp."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    aten = torch.ops.aten
    x, dy = 1.5 * torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)
    h, dh = 1.5 * torch.randn(ROWS, HIDDEN), torch.randn(ROWS, HIDDEN)
    y, hy = torch.empty_like(x), torch.empty_like(h)
    gamma, beta, bias = torch.randn(COLUMNS), torch.randn(COLUMNS), torch.randn(HIDDEN)
    _, mean, inverse = aten.native_layer_norm(x, [COLUMNS], gamma, beta, 1e-5)
    table, indices = torch.randn(VOCABULARY, COLUMNS), torch.arange(ROWS) * 7919 % VOCABULARY
    labels = torch.arange(ROWS) * 31 % COLUMNS
    probabilities, log_p = torch.softmax(x, 1), torch.log_softmax(x, 1)
    one, count = torch.tensor(1.0), torch.tensor(float(ROWS))
    weights = 0.1 * torch.randn(HIDDEN, COLUMNS)
    q, k, v = (torch.randn(1, HEADS, LENGTH, HEAD_SIZE, requires_grad=True) for _ in range(3))
    attention = torch.nn.functional.scaled_dot_product_attention
    attended = attention(q, k, v, is_causal=True)
    dattended = torch.randn_like(attended)

    def no_grad(function):
        def run():
            with torch.no_grad():
                function()
        return run

    def cross_entropy_backward():
        gradient = aten.nll_loss_backward(one, log_p, labels, None, 1, -100, count)
        aten._log_softmax_backward_data(gradient, log_p, 1, torch.float32)

    return {
        "gelu": lambda: aten.gelu.out(h, out=hy),
        "gelu_backward": lambda: aten.gelu_backward(dh, h),
        "gelu_tanh": lambda: aten.gelu.out(h, approximate="tanh", out=hy),
        "gelu_tanh_backward": lambda: aten.gelu_backward(dh, h, approximate="tanh"),
        "silu": lambda: aten.silu.out(h, out=hy),
        "silu_backward": lambda: aten.silu_backward(dh, h),
        "tanh": lambda: torch.tanh(h, out=hy),
        "tanh_backward": lambda: aten.tanh_backward(dh, h),
        "relu": lambda: aten.relu.out(h, out=hy),
        "relu_backward": lambda: aten.threshold_backward(dh, h, 0),
        "add": lambda: torch.add(x, dy, out=y),
        "multiply": lambda: torch.mul(x, dy, out=y),
        "embedding": lambda: aten.embedding(table, indices),
        "embedding_backward": lambda: aten.embedding_dense_backward(dy, indices, VOCABULARY, -1, False),
        "layer_norm": lambda: aten.native_layer_norm(x, [COLUMNS], gamma, beta, 1e-5),
        "layer_norm_backward": lambda: aten.native_layer_norm_backward(
            dy, x, [COLUMNS], mean, inverse, gamma, beta, [True, True, True]),
        "rms_norm": lambda: torch.nn.functional.rms_norm(x, [COLUMNS], gamma),
        "softmax": lambda: torch.softmax(x, 1),
        "softmax_backward": lambda: aten._softmax_backward_data(dy, probabilities, 1, torch.float32),
        "log_softmax": lambda: torch.log_softmax(x, 1),
        "cross_entropy": lambda: torch.nn.functional.cross_entropy(x, labels),
        "cross_entropy_backward": cross_entropy_backward,
        "cross_entropy_with_gradient": lambda: (torch.nn.functional.cross_entropy(x, labels), cross_entropy_backward()),
        "linear": lambda: torch.nn.functional.linear(x, weights, bias),
        "linear_backward": lambda: (dh @ weights, dh.t() @ x, dh.sum(0)),
        "attention": no_grad(lambda: attention(q, k, v, is_causal=True)),
        "attention_backward": lambda: torch.autograd.grad(attended, (q, k, v), dattended, retain_graph=True),
    }, torch.__version__


def library(folder):
    path = os.path.join(folder, "libmp_ops.so")
    include = os.path.join(HERE, "..", "..", "include")
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", "-I", include,
                    os.path.join(HERE, "ops.cpp"), "-o", path], check=True)
    made = ctypes.CDLL(path)
    made.mp_op_name.restype = ctypes.c_char_p
    made.mp_op_seconds.restype = ctypes.c_double
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa", choices=["avx2", "avx512"], help="at most these instructions, for both")
    parser.add_argument("--only", default="", help="ops whose names contain this")
    parser.add_argument("--rounds", type=int, default=41, help="turns of each")
    options = parser.parse_args()
    if options.isa:
        os.environ["MP_ISA"] = os.environ["ATEN_CPU_CAPABILITY"] = options.isa
        # The libraries that torch computes products with choose for themselves.
        os.environ["MKL_ENABLE_INSTRUCTIONS"] = options.isa.upper()
        os.environ["ONEDNN_MAX_CPU_ISA"] = {"avx2": "AVX2", "avx512": "AVX512_CORE"}[options.isa]
    theirs, version = torch_ops()
    with tempfile.TemporaryDirectory() as folder:
        ours = library(folder)
        print(f"| float, one core | mp, us | torch {version}, us | mp / torch |\n|---|---:|---:|---:|")
        index, times_of = 0, {}
        while (name := ours.mp_op_name(index)) is not None:
            name = name.decode()
            if name not in theirs:
                times_of[name] = index
            elif options.only in name:
                ours.mp_op_seconds(index, 1)
                theirs[name]()
                mine, others = [], []
                for _ in range(options.rounds):
                    mine.append(ours.mp_op_seconds(index, 1))
                    start = time.thread_time()
                    theirs[name]()
                    others.append(time.thread_time() - start)
                a, b = statistics.median(mine) * 1e6, statistics.median(others) * 1e6
                print(f"| {name} | {a:.0f} | {b:.0f} | {a / b:.2f} |", flush=True)
            index += 1
        if options.only in "float8":
            turns = [{name: ours.mp_op_seconds(at, 1) * 1e6 for name, at in times_of.items()}
                     for _ in range(options.rounds)]
            step, part = (statistics.median(turn[name] for turn in turns)
                          for name in ("float8_step", "float8_quantisation"))
            print(f"\nA linear layer's forward and backward pass in a float8 region takes {step:.0f} us; the "
                  f"quantisation of its operands, measured alone, {part:.0f} us of them: {100 * part / step:.1f} %.")


if __name__ == "__main__":
    main()
