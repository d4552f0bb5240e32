#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The GPT of examples/train_gpt beside the same model in torch: losses, and the time of a step, by turns.

    python3 bench/torch/gpt.py                          # float, bfloat16 and autocast, 1 and 2 threads
    python3 bench/torch/gpt.py --isa avx2 --threads 1   # as on a processor with AVX2 alone
    python3 bench/torch/gpt.py --layers 12 --width 768 --heads 12 --batch 2 --steps 10
    python3 bench/torch/gpt.py --formats --width 768 --heads 12    # mp's formats by turns, without torch's model

Needs torch (`pip install torch`) and g++. Both models start from the weights that mp draws, see the same random text
of 100 characters, and take a step in turns, in one process; torch in bfloat16 is torch.autocast over float weights, which
mp does as `autocast`; as `bfloat16` it stores weights, gradients and activations in that. Prints a table in Markdown.

With --llm-c FOLDER, where https://github.com/karpathy/llm.c was cloned to, the table in float has llm.c's step, too,
from the same weights and on the same text, compiled as its Makefile does. It clips no gradients and decays all
weights, so that only its first loss is the same.
"""
import argparse
import array
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY = 100


def library(folder):
    """bench/torch/gpt.cpp, compiled."""
    path = os.path.join(folder, "gpt.so")
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-pthread", "-I" + os.path.join(HERE, "../../include"),
                    os.path.join(HERE, "gpt.cpp"), "-o", path], check=True)
    it = ctypes.CDLL(path)
    it.gpt_make.restype = ctypes.c_void_p
    it.gpt_make.argtypes = [ctypes.c_int, ctypes.c_int] + 5 * [ctypes.c_long]
    it.gpt_step.restype = ctypes.c_float
    it.gpt_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_double]
    it.gpt_free.argtypes = [ctypes.c_void_p]
    return it


class llm_c_gpt:
    """llm.c's train_gpt2.c, compiled from its folder."""

    def __init__(self, source, folder, weights, sizes):
        path, checkpoint = os.path.join(folder, "llm_c.so"), os.path.join(folder, "weights.bin")
        if not os.path.exists(path):
            march = "-march=x86-64-v3" if sizes.isa == "avx2" else "-march=native"
            subprocess.run(["gcc", "-Ofast", march, "-fopenmp", "-DOMP", "-fPIC", "-shared", "-w", "-I" + source,
                            os.path.join(HERE, "llm_c.c"), "-o", path, "-lm"], check=True)
        self.it, self.sizes, self.steps = ctypes.CDLL(path), sizes, 0
        self.it.llm_c_make.restype = ctypes.c_void_p
        self.it.llm_c_step.restype = ctypes.c_float
        self.it.llm_c_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long,
                                       ctypes.c_float, ctypes.c_int]
        padded = -VOCABULARY % 128
        blocks = [f"h.{i}." for i in range(sizes.layers)]
        order = [["wte.weight"], ["wpe.weight"]] + [[b + name for b in blocks] for name in (
            "ln_1.weight", "ln_1.bias", "attn.qkv.weight", "attn.qkv.bias", "attn.out.weight", "attn.out.bias", "ln_2.weight",
            "ln_2.bias", "mlp.fc.weight", "mlp.fc.bias", "mlp.proj.weight", "mlp.proj.bias")] + [["ln_f.weight"], ["ln_f.bias"]]
        with open(checkpoint, "wb") as file:
            header = [20240326, 3, sizes.context, VOCABULARY, sizes.layers, sizes.heads, sizes.width, VOCABULARY + padded]
            array.array("i", header + (256 - len(header)) * [0]).tofile(file)
            for names in order:
                for name in names:
                    array.array("f", weights[name]).tofile(file)
                    if name == "wte.weight":
                        array.array("f", padded * sizes.width * [0.0]).tofile(file)
        with open(os.devnull, "w") as nothing:
            stdout = os.dup(1)
            sys.stdout.flush()
            os.dup2(nothing.fileno(), 1)  # what it prints is no row of the table
            self.handle = ctypes.c_void_p(self.it.llm_c_make(checkpoint.encode()))
            ids = (ctypes.c_int * (sizes.batch * sizes.context))()
            self.it.llm_c_step(self.handle, ctypes.addressof(ids), ctypes.addressof(ids), sizes.batch, sizes.context, 0.0, 1)
            ctypes.CDLL(None).fflush(None)
            os.dup2(stdout, 1)

    def step(self, ids, labels, rate):
        self.steps += 1
        return self.it.llm_c_step(self.handle, ids.data_ptr(), labels.data_ptr(), self.sizes.batch, self.sizes.context,
                                  2e-3 * rate, self.steps)


class torch_gpt:
    """The same model, written as torch's users write it."""

    def __init__(self, weights, sizes, bfloat16):
        import torch

        self.torch, self.sizes, self.bfloat16 = torch, sizes, bfloat16
        width = sizes.width
        shapes = {"wte.weight": (VOCABULARY, width), "wpe.weight": (sizes.context, width), "qkv.weight": (3 * width, width),
                  "out.weight": (width, width), "fc.weight": (4 * width, width), "proj.weight": (width, 4 * width)}
        self.p = {}
        for name, values in weights.items():
            shape = next((s for end, s in shapes.items() if name.endswith(end)), (len(values),))
            self.p[name] = torch.tensor(values).reshape(shape).requires_grad_(True)
        matrices = [x for x in self.p.values() if x.dim() == 2]
        vectors = [x for x in self.p.values() if x.dim() == 1]
        self.optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                           lr=2e-3, betas=(0.9, 0.95), eps=1e-8, foreach=True)

    def logits(self, ids):
        F, p, sizes = self.torch.nn.functional, self.p, self.sizes
        batch, length = ids.shape
        split = lambda t: t.view(batch, length, sizes.heads, -1).transpose(1, 2)
        norm = lambda t, name: F.layer_norm(t, (sizes.width,), p[name + ".weight"], p[name + ".bias"])
        linear = lambda t, name: F.linear(t, p[name + ".weight"], p[name + ".bias"])
        x = p["wte.weight"][ids] + p["wpe.weight"][:length]
        for i in range(sizes.layers):
            h = f"h.{i}."
            q, k, v = linear(norm(x, h + "ln_1"), h + "attn.qkv").split(sizes.width, 2)
            y = F.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
            x = x + linear(y.transpose(1, 2).reshape(batch, length, sizes.width), h + "attn.out")
            x = x + linear(F.gelu(linear(norm(x, h + "ln_2"), h + "mlp.fc"), approximate="tanh"), h + "mlp.proj")
        return F.linear(norm(x, "ln_f"), p["wte.weight"])

    def step(self, ids, labels, rate):
        torch = self.torch
        for group in self.optimizer.param_groups:
            group["lr"] = 2e-3 * rate
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bfloat16):
            logits = self.logits(ids)
        loss = torch.nn.functional.cross_entropy(logits.float().view(-1, VOCABULARY), labels.view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(self.p.values()), 1.0)
        self.optimizer.step()
        return loss.item()


def batches(sizes, steps):
    """Text in which a character says something about the next one."""
    import torch

    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        first = torch.randint(VOCABULARY, (sizes.batch, 1), generator=generator)
        steps_taken = torch.randint(1, 5, (sizes.batch, sizes.context), generator=generator).cumsum(1)
        text = torch.cat([first, (first + steps_taken) % VOCABULARY], 1).int()
        yield text[:, :-1].contiguous(), text[:, 1:].contiguous()


FORMATS = ("float", "bfloat16", "autocast")


def compare(mp, folder, sizes, format, threads):
    import torch

    torch.set_num_threads(threads)
    handle = mp.gpt_make(FORMATS.index(format), threads, VOCABULARY, sizes.context, sizes.layers, sizes.width, sizes.heads)
    weights = {}
    visitor = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(ctypes.c_float), ctypes.c_long)
    mp.gpt_weights(ctypes.c_void_p(handle), visitor(lambda name, values, count: weights.__setitem__(
        name.decode(), values[:count])))
    theirs = torch_gpt(weights, sizes, format != "float")
    llm_c = None
    if sizes.llm_c and format == "float":
        llm_c = llm_c_gpt(sizes.llm_c, folder, weights, sizes)
        llm_c.it.llm_c_threads(threads)
    times, worst, losses = {"mp": [], "torch": [], "llm.c": []}, 0.0, (0.0, 0.0)
    for step, (ids, labels) in enumerate(batches(sizes, sizes.steps)):
        rate = min((step + 1) / 20, 1.0)
        begin = time.perf_counter()
        ours = mp.gpt_step(handle, ids.data_ptr(), labels.data_ptr(), ids.numel(), sizes.batch, rate)
        middle = time.perf_counter()
        other = theirs.step(ids.long(), labels.long(), rate)
        times["torch"].append(time.perf_counter() - middle)
        times["mp"].append(middle - begin)
        if llm_c:
            begin = time.perf_counter()
            loss = llm_c.step(ids, labels, rate)
            times["llm.c"].append(time.perf_counter() - begin)
            assert step > 0 or abs(loss - ours) < 1e-4, (loss, ours)
        worst, losses = max(worst, abs(ours - other)), (ours, other)
    mp.gpt_free(handle)
    ours, other = (1e3 * statistics.median(times[who][2:]) for who in ("mp", "torch"))
    print(f"| {format} | {threads} | {ours:.1f} | {other:.1f} | {ours / other:.2f} | "
          f"{losses[0]:.4f} | {losses[1]:.4f} | {worst:.1e} |", end="", flush=True)
    if sizes.llm_c:
        third = 1e3 * statistics.median(times["llm.c"][2:]) if llm_c else 0
        print(f" {third:.1f} | {ours / third:.2f} |" if llm_c else " | |", end="")
    print(flush=True)


def compare_formats(mp, sizes, threads):
    """mp's formats by turns: what 16 bits gain over float."""
    handles = [mp.gpt_make(i, threads, VOCABULARY, sizes.context, sizes.layers, sizes.width, sizes.heads) for i in range(len(FORMATS))]
    times = [[] for _ in FORMATS]
    for ids, labels in batches(sizes, sizes.steps):
        for handle, of_format in zip(handles, times):
            begin = time.perf_counter()
            mp.gpt_step(handle, ids.data_ptr(), labels.data_ptr(), ids.numel(), sizes.batch, 1.0)
            of_format.append(time.perf_counter() - begin)
    medians = [1e3 * statistics.median(it[2:]) for it in times]
    for format, median in zip(FORMATS, medians):
        print(f"| {format} | {threads} | {median:.1f} | {medians[0] / median:.2f} |", flush=True)
    for handle in handles:
        mp.gpt_free(handle)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("layers", 4), ("width", 128), ("heads", 4), ("context", 128), ("batch", 16), ("steps", 100)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--format", choices=FORMATS, action="append")
    parser.add_argument("--formats", action="store_true", help="mp's formats by turns, without torch's model")
    parser.add_argument("--llm-c", help="the folder of llm.c")
    parser.add_argument("--isa", help="MP_ISA of mp, and ATEN_CPU_CAPABILITY of torch")
    sizes = parser.parse_args()
    if sizes.isa:
        os.environ["MP_ISA"] = sizes.isa
        os.environ["ATEN_CPU_CAPABILITY"] = sizes.isa
        os.environ["ONEDNN_MAX_CPU_ISA"] = sizes.isa.upper()
        os.environ["MKL_ENABLE_INSTRUCTIONS"] = sizes.isa.upper()
    # What the environment sets for older OpenBLAS would slow a newer one.
    os.environ.pop("OPENBLAS_CORETYPE", None)
    with tempfile.TemporaryDirectory() as folder:
        mp = library(folder)
        if sizes.formats:
            print("| format | threads | mp, ms a step | times as fast as float |\n|---|---:|---:|---:|")
            for threads in sizes.threads or [1, 2]:
                compare_formats(mp, sizes, threads)
            return
        more = " llm.c, ms | mp / llm.c |" if sizes.llm_c else ""
        print("| format | threads | mp, ms a step | torch, ms | mp / torch | last loss, mp | torch | largest difference |" + more)
        print("|---|---:|---:|---:|---:|---:|---:|---:|" + ("---:|---:|" if more else ""))
        for format in sizes.format or FORMATS:
            for threads in sizes.threads or [1, 2]:
                compare(mp, folder, sizes, format, threads)


if __name__ == "__main__":
    main()
