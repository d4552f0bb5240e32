#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Convolutions of floats, forward and backward, beside torch's (oneDNN) in one process, by turns.

    python3 bench/torch/convolutions.py                # as this processor is, one thread
    python3 bench/torch/convolutions.py --isa avx2     # as on one with AVX2 alone
    OMP_WAIT_POLICY=passive python3 bench/torch/convolutions.py --threads 2

Needs torch (`pip install torch`) and g++. Compiles bench/torch/convolutions.cpp with plain -O2 and prints a table in
Markdown: GFLOP/s of mp, and its speed as a multiple of torch's. With more threads, those of torch have to sleep while
mp has its turn, as OMP_WAIT_POLICY asks.
"""
import argparse
import ctypes
import os
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# images, channels, height, width, outputs, kernel, padding, stride
LAYERS = [(16, 3, 32, 32, 16, 5, 2, 1), (16, 16, 32, 32, 32, 3, 1, 1), (8, 64, 56, 56, 64, 3, 1, 1),
          (8, 64, 56, 56, 64, 1, 0, 1), (8, 128, 28, 28, 128, 3, 1, 1), (8, 256, 14, 14, 256, 3, 1, 1),
          (2, 3, 224, 224, 64, 7, 3, 2), (64, 1, 28, 28, 8, 3, 1, 1)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa", choices=["avx2", "avx512"], help="at most these instructions, for both")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=21, help="turns of each")
    return parser.parse_args()


def library(folder):
    path = os.path.join(folder, "libmp_convolutions.so")
    include = os.path.join(HERE, "..", "..", "include")
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", "-I", include,
                    os.path.join(HERE, "convolutions.cpp"), "-o", path], check=True)
    return ctypes.CDLL(path)


def seconds(function, times):
    start = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - start) / times


def main():
    options = arguments()
    if options.isa:
        os.environ["MP_ISA"] = os.environ["ATEN_CPU_CAPABILITY"] = options.isa
        os.environ["ONEDNN_MAX_CPU_ISA"] = {"avx2": "AVX2", "avx512": "AVX512_CORE"}[options.isa]
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    backward = torch.ops.aten.convolution_backward
    with tempfile.TemporaryDirectory() as folder:
        ours = library(folder)
        print(f"| {options.threads} thread{'s' if options.threads > 1 else ''}, torch {torch.__version__} | "
              "y, GFLOP/s | speed | dx, GFLOP/s | speed | dw, GFLOP/s | speed |\n|---|---:|---:|---:|---:|---:|---:|")
        for layer in LAYERS:
            n, c, h, w, o, k, padding, stride = layer
            x, kernels = torch.randn(n, c, h, w), 0.1 * torch.randn(o, c, k, k)
            expected = torch.conv2d(x, kernels, None, stride, padding)
            dy = torch.randn_like(expected)
            y, dx, dw = torch.empty_like(expected), torch.empty_like(x), torch.empty_like(kernels)
            numbers = (ctypes.c_ssize_t * 8)(*layer)
            pointer = {id(t): ctypes.c_void_p(t.data_ptr()) for t in (x, kernels, dy, y, dx, dw)}

            def call(name, *tensors):
                return lambda: getattr(ours, name)(options.threads, numbers, *(pointer[id(t)] for t in tensors))

            def gradient(which):
                wanted = [which == "dx", which == "dw", False]
                return lambda: backward(dy, x, kernels, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1,
                                        wanted)

            work = 2 * dy.numel() * c * k * k
            cells = []
            for mine, theirs, found, place in (
                    (call("mp_conv2d", x, kernels, y), lambda: torch.conv2d(x, kernels, None, stride, padding), y, None),
                    (call("mp_conv2d_dx", x, kernels, dy, dx), gradient("dx"), dx, 0),
                    (call("mp_conv2d_dw", x, kernels, dy, dw), gradient("dw"), dw, 1)):
                mine()
                result = theirs()
                right = result if place is None else result[place]
                if (found - right).abs().max() > 1e-4 * right.abs().max():
                    raise SystemExit(f"{layer}: the results differ")
                times = max(1, int(5e-3 / seconds(mine, 1)))
                turns = [(seconds(mine, times), seconds(theirs, times)) for _ in range(options.rounds)]
                a, b = (statistics.median(column) for column in zip(*turns))
                cells.append(f"{work / a / 1e9:.0f} | {b / a:.2f}")
            print(f"| {n} x {c} x {h} x {w}, {o} kernels of {k} x {k}, stride {stride} | " + " | ".join(cells) + " |",
                  flush=True)


if __name__ == "__main__":
    main()
