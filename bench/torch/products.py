#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Matrix products beside those of torch (MKL, oneDNN) and NumPy (OpenBLAS) in one process, by turns.

    python3 bench/torch/products.py                     # as this processor is, one thread
    python3 bench/torch/products.py --isa avx2          # as on one with AVX2 alone
    python3 bench/torch/products.py --threads 2 --only 512

Needs torch, numpy (`pip install torch numpy`) and g++. Compiles bench/torch/products.cpp with plain -O2 and prints a table
in Markdown: medians in microseconds, and mp's speed as a multiple of the fastest peer's. w^T says that the weights are
stored output by output, as torch.nn.Linear has them. NumPy takes part in float.
"""
import argparse
import ctypes
import os
import random
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# rows, outputs, inputs, and whether the weights are stored output by output
FEW_ROWS = [(1, 512, 512, True), (1, 4096, 1024, True), (1, 4096, 4096, True), (1, 4096, 11008, True),
            (4, 4096, 4096, True), (16, 4096, 4096, True), (1, 4096, 4096, False), (4, 4096, 4096, False),
            (16, 4096, 4096, False)]
MANY_ROWS = [(size, size, size, False) for size in (64, 128, 256, 512, 1024, 2048)] + [(1000, 37, 513, False),
                                                                                      (2048, 512, 128, True)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa", choices=["avx2", "avx512"], help="at most these instructions, for all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--rounds", type=int, default=21, help="turns of each")
    return parser.parse_args()


def limit(options):
    """Sets what the libraries read when they are loaded."""
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(options.threads)
    if options.isa:
        os.environ["MP_ISA"] = os.environ["ATEN_CPU_CAPABILITY"] = options.isa
        os.environ["MKL_ENABLE_INSTRUCTIONS"] = options.isa.upper()
        os.environ["ONEDNN_MAX_CPU_ISA"] = {"avx2": "AVX2", "avx512": "AVX512_CORE"}[options.isa]
        os.environ["OPENBLAS_CORETYPE"] = {"avx2": "Haswell", "avx512": "SkylakeX"}[options.isa]


def library(folder):
    path = os.path.join(folder, "libmp_products.so")
    include = os.path.join(HERE, "..", "..", "include")
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", "-I", include,
                    os.path.join(HERE, "products.cpp"), "-o", path], check=True)
    return ctypes.CDLL(path)


def contenders(ours, options, name, shape):
    """name -> function, of which each writes the product to a buffer of its own; and these buffers."""
    import numpy
    import torch

    m, n, k, transposed = shape
    dtype = getattr(torch, {"half": "float16"}.get(name, name if name != "float" else "float32"))
    x = torch.randn(m, k).to(dtype)
    w = (0.05 * torch.randn(n, k) if transposed else 0.05 * torch.randn(k, n)).to(dtype)
    results = [torch.empty(m, n, dtype=dtype) for _ in range(2)]
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, w, results[0])]
    sizes = [ctypes.c_ssize_t(size) for size in (m, n, k)]
    right = w.t() if transposed else w
    found = {
        "mp": lambda: getattr(ours, f"mp_{name}")(options.threads, int(transposed), *sizes, *pointers),
        "torch": lambda: torch.mm(x, right, out=results[1]),
    }
    if name == "float":
        a, b, c = x.numpy(), right.numpy(), numpy.empty((m, n), dtype=numpy.float32)
        found["numpy"] = lambda: numpy.matmul(a, b, out=c)
    return found, results


def seconds(function, times):
    start = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - start) / times


def main():
    options = arguments()
    limit(options)
    import numpy
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        ours = library(folder)
        print(f"| {options.threads} thread{'s' if options.threads > 1 else ''} | mp, us | torch {torch.__version__}, us | "
              f"numpy {numpy.__version__}, us | speed of mp / best | GB/s of w | GFLOP/s |\n|---|---:|---:|---:|---:|---:|---:|")
        for name in ("float", "bfloat16", "half"):
            for shape in FEW_ROWS + MANY_ROWS:
                m, n, k, transposed = shape
                row = f"{name}, {m} x {k} x {n}{' w^T' if transposed else ''}"
                if options.only not in row:
                    continue
                found, results = contenders(ours, options, name, shape)
                once = {who: seconds(run, 1) for who, run in found.items()}
                rounds = options.rounds if max(once.values()) < 0.2 else 3
                times = {who: 1 if once[who] > 0.2 else max(1, int(5e-3 / max(seconds(run, 2), 1e-7)))
                         for who, run in found.items()}
                difference = (results[0].float() - results[1].float()).abs().max().item()
                if difference > 0.02 * results[1].float().abs().max().item():
                    print(f"| {row} | the products differ by {difference} |")
                    continue
                turns = {who: [] for who in found}
                for _ in range(rounds):
                    for who in random.sample(sorted(found), len(found)):
                        turns[who].append(seconds(found[who], times[who]))
                median = {who: statistics.median(turn) for who, turn in turns.items()}
                best = min(value for who, value in median.items() if who != "mp")
                numpy_us = f"{median['numpy'] * 1e6:.1f}" if "numpy" in median else ""
                print(f"| {row} | {median['mp'] * 1e6:.1f} | {median['torch'] * 1e6:.1f} | {numpy_us} | "
                      f"{best / median['mp']:.2f} | {n * k * results[0].element_size() / median['mp'] / 1e9:.1f} | "
                      f"{2e-9 * m * n * k / median['mp']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
