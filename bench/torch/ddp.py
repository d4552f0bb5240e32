#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The GPT of examples/train_gpt on one and two ranks, beside torch's DistributedDataParallel: tokens a second.

    python3 bench/torch/ddp.py                                  # 0.8 million parameters
    python3 bench/torch/ddp.py --layers 6 --width 384 --heads 6 --batch 8 --steps 10      # 10.7 million
    python3 bench/torch/ddp.py --timeline                       # the times of one rank, for bench/ranks

Needs torch (`pip install torch`), g++ and Open MPI. Every rank is a process of one thread on a processor of its own, with
--batch sequences: mp in float over MPI, torch in float over gloo. The wire is what gradients travel as; torch's bfloat16
is its bf16_compress_hook, its sharded optimizer ZeroRedundancyOptimizer. "apart" are two processes that train alone at
the same time: what two processors give where nothing is reduced. By turns, several rounds, medians over the rounds of
medians over steps. Prints a table in Markdown. --lock FILE holds a lock while a process measures, --prefix COMMAND is put
before each.
"""
import argparse
import fcntl
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

from gpt import HERE, VOCABULARY, batches, torch_gpt

SIZES = ("layers", "width", "heads", "context", "batch", "steps")
WARM_UP = 2


def random_weights(sizes):
    """Of every parameter by its name: the time of a step does not depend on them."""
    import torch

    w, normal = sizes.width, lambda count: (0.02 * torch.randn(count)).tolist()
    weights = {"wte.weight": normal(VOCABULARY * w), "wpe.weight": normal(sizes.context * w)}
    for i in range(sizes.layers):
        for name, outputs, inputs in (("attn.qkv", 3 * w, w), ("attn.out", w, w), ("mlp.fc", 4 * w, w), ("mlp.proj", w, 4 * w)):
            weights[f"h.{i}.{name}.weight"] = normal(outputs * inputs)
            weights[f"h.{i}.{name}.bias"] = outputs * [0.0]
        for name in ("ln_1", "ln_2"):
            weights[f"h.{i}.{name}.weight"], weights[f"h.{i}.{name}.bias"] = w * [1.0], w * [0.0]
    weights["ln_f.weight"], weights["ln_f.bias"] = w * [1.0], w * [0.0]
    return weights


def torch_worker(sizes):
    """One rank of torch; rank 0 prints a line of JSON."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(1)

    class module(torch.nn.Module):
        """gpt.py's model with its parameters where DistributedDataParallel looks for them."""

        def __init__(self):
            super().__init__()
            self.inner = [torch_gpt(random_weights(sizes), sizes, False)]
            for name, value in self.inner[0].p.items():
                self.inner[0].p[name] = torch.nn.Parameter(value.detach())
                self.register_parameter(name.replace(".", "_"), self.inner[0].p[name])

        def forward(self, ids):
            return self.inner[0].logits(ids)

    model = module()
    groups = [{"params": [x for x in model.parameters() if x.dim() == 2], "weight_decay": 0.1},
              {"params": [x for x in model.parameters() if x.dim() == 1], "weight_decay": 0.0}]
    adamw = {"lr": 2e-3, "betas": (0.9, 0.95), "eps": 1e-8, "foreach": True}
    run = model
    if ranks > 1:
        dist.init_process_group("gloo")
        run = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        if sizes.wire == "bfloat16":
            from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

            run.register_comm_hook(None, bf16_compress_hook)
    if sizes.shard and ranks > 1:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(groups, torch.optim.AdamW, **adamw)
    else:
        optimizer = torch.optim.AdamW(groups, **adamw)
    times = []
    for ids, labels in batches(sizes, sizes.steps):
        ids, labels = ids.long(), labels.long()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=ranks == 1)
        logits = run(ids)
        loss = torch.nn.functional.cross_entropy(logits.view(-1, VOCABULARY), labels.view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - begin))
    if rank == 0:
        print(json.dumps({"ranks": ranks, "tokens": ranks * sizes.batch * sizes.context, "steps": times[WARM_UP:],
                          "parameters": sum(x.numel() for x in model.parameters())}), flush=True)
    if ranks > 1:
        dist.barrier()
        os._exit(0)  # ending by itself, a rank of gloo can abort when its peer is gone


class measurements:
    def __init__(self, sizes, folder):
        self.sizes, self.program = sizes, sizes.program or os.path.join(folder, "ddp")
        if not sizes.program:
            subprocess.run(["mpicxx", "-DOMPI_SKIP_MPICXX", "-std=c++20", "-O2", "-DNDEBUG", "-pthread",
                            "-I" + os.path.join(HERE, "../../include"), os.path.join(HERE, "ddp.cpp"), "-o", self.program],
                           check=True)
        self.environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                OMPI_MCA_rmaps_base_oversubscribe="1", OMP_NUM_THREADS="1", MASTER_ADDR="127.0.0.1")
        self.environment.pop("OPENBLAS_CORETYPE", None)
        self.port = 29500 + os.getpid() % 1000

    def on_processors(self, commands, environments):
        """Runs a command on each processor, all at once; the lines of JSON that they print."""
        lock = open(self.sizes.lock, "w") if self.sizes.lock else None
        if lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        running = [subprocess.Popen([*shlex.split(self.sizes.prefix), "taskset", "-c", str(r), *command], stdout=subprocess.PIPE,
                                    env=dict(self.environment, **more)) for r, (command, more) in enumerate(zip(commands, environments))]
        lines = [it.communicate()[0] for it in running]
        if lock:
            lock.close()
        if any(it.returncode for it in running):
            sys.exit("a process failed")
        return [json.loads(line) for line in lines if line]

    def mp(self, ranks, wire="float32", shard=False, apart=False, **more):
        words = [self.program]
        for name, value in {**{n: getattr(self.sizes, n) for n in SIZES}, "wire": wire, "shard": int(shard),
                            "bucket-bytes": self.sizes.bucket_bytes, **more}.items():
            words += ["--" + name, str(value)]
        if apart or ranks == 1:
            return self.on_processors(ranks * [words], ranks * [{}])
        lock = open(self.sizes.lock, "w") if self.sizes.lock else None
        if lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        each = "exec taskset -c $OMPI_COMM_WORLD_RANK " + shlex.join(words)
        lines = subprocess.run([*shlex.split(self.sizes.prefix), "mpirun", "-n", str(ranks), "--bind-to", "none", "sh", "-c", each],
                               env=self.environment, stdout=subprocess.PIPE, check=True).stdout
        if lock:
            lock.close()
        return [json.loads(lines)]

    def torch(self, ranks, wire="float32", shard=False, apart=False):
        words = [sys.executable, os.path.abspath(__file__), "--worker", "--wire", wire] + (["--shard"] if shard else [])
        for name in SIZES:
            words += ["--" + name, str(getattr(self.sizes, name))]
        self.port += 1
        of_rank = [{"RANK": "0" if apart else str(r), "WORLD_SIZE": "1" if apart else str(ranks), "MASTER_PORT": str(self.port)}
                   for r in range(ranks)]
        return self.on_processors(ranks * [words], of_rank)


def middle(lines, key):
    return statistics.median(x[key] for x in lines)


def timeline(sizes, folder):
    """What bench/ranks simulates from: a rank by itself, and two to compare with."""
    it = measurements(sizes, folder)
    again = lambda **what: [x for _ in range(sizes.rounds) for x in it.mp(**what)]
    one = again(ranks=1)
    print(f"# {', '.join(f'{name} {getattr(sizes, name)}' for name in SIZES)}\ntokens {one[0]['tokens']}")
    for key in ("forward", "backward", "update"):
        print(f"{key} {middle(one, key):.3f}")
    apart = again(ranks=2, apart=True)
    print(f"together {middle(apart, 'all') / middle(one, 'all'):.4f}")
    print(f"copy {middle(again(ranks=2, exchange=64 << 20), 'copy'):.4f}")
    # In one bucket, everything is done in finish(): as nothing has to travel, by the processor.
    whole = 1 << 30
    for wire in ("float32", "bfloat16", "half"):
        lines = again(ranks=1, wire=wire, alone=1, **{"bucket-bytes": whole})
        print(f"reduce {wire} {1e6 * middle(lines, 'wait') / lines[0]['parameters']:.4f}")
    each = again(ranks=1, alone=1, **{"bucket-bytes": 1})
    for b, (_, size) in enumerate(each[0]["sent"]):
        print(f"gradient {statistics.median(x['sent'][b][0] * middle(one, 'backward') / (x['backward'] + x['wait']) for x in each):.3f} "
              f"{size // 4}")
    for wire, bucket_bytes, shard in (("float32", 1 << 20, 0), ("float32", 8 << 20, 0), ("bfloat16", 1 << 20, 0),
                                      ("bfloat16", 8 << 20, 0), ("float32", 1 << 20, 1), ("bfloat16", 1 << 20, 1)):
        lines = again(ranks=2, wire=wire, shard=shard, **{"bucket-bytes": bucket_bytes})
        print(f"two {wire} {bucket_bytes} {shard} {middle(lines, 'all'):.3f} {middle(lines, 'wait'):.3f}", flush=True)


def table(sizes, folder):
    it = measurements(sizes, folder)
    kinds = [("one rank", {"ranks": 1}), ("two, apart", {"ranks": 2, "apart": True}), ("two, float32", {"ranks": 2}),
             ("two, bfloat16", {"ranks": 2, "wire": "bfloat16"}), ("two, float32, sharded", {"ranks": 2, "shard": True}),
             ("two, bfloat16, sharded", {"ranks": 2, "wire": "bfloat16", "shard": True})]
    if sizes.quick:
        kinds = kinds[:3]
    rates, last = {}, {}
    for _ in range(sizes.rounds):
        for name, what in kinds:
            for who in ("mp",) if sizes.mp_only else ("mp", "torch"):
                lines = getattr(it, who)(**what)
                rates.setdefault((who, name), []).append(sum(1e3 * x["tokens"] / statistics.median(x["steps"]) for x in lines))
                last.setdefault((who, name), []).append(lines[0])
    first = last["mp", "one rank"][0]
    print(f"{first['parameters']} parameters, {first['tokens']} tokens a rank and step, buckets of {sizes.bucket_bytes} bytes\n")
    print("| ranks, wire | mp, tokens/s | times one | times apart | bytes sent a step | buckets, of them early | waited, ms | "
          "MPI_Test calls | torch, tokens/s | times one | times apart | mp / torch |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    ratio = lambda who, name, of: statistics.median(a / b for a, b in zip(rates[who, name], rates[who, of]))
    for name, _ in kinds:
        of = last["mp", name]
        cells = [f"{statistics.median(rates['mp', name]):.0f}", f"{ratio('mp', name, 'one rank'):.2f}",
                 f"{ratio('mp', name, 'two, apart'):.2f}", f"{middle(of, 'bytes'):.0f}",
                 f"{middle(of, 'buckets'):.0f}, {middle(of, 'early'):.0f}", f"{middle(of, 'wait'):.2f}", f"{middle(of, 'looks'):.0f}"]
        if not sizes.mp_only:
            cells += [f"{statistics.median(rates['torch', name]):.0f}", f"{ratio('torch', name, 'one rank'):.2f}",
                      f"{ratio('torch', name, 'two, apart'):.2f}",
                      f"{statistics.median(a / b for a, b in zip(rates['mp', name], rates['torch', name])):.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("layers", 4), ("width", 128), ("heads", 4), ("context", 128), ("batch", 16), ("steps", 24),
                        ("rounds", 5), ("bucket-bytes", 8 << 20)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--timeline", action="store_true", help="the times of one rank, as bench/ranks reads them")
    parser.add_argument("--wire", default="float32", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="float32 alone")
    parser.add_argument("--mp-only", action="store_true", help="without torch")
    parser.add_argument("--program", help="bench/torch/ddp.cpp as it was compiled")
    parser.add_argument("--lock", help="a file")
    parser.add_argument("--prefix", default="", help="a command that runs its arguments")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--shard", action="store_true", help=argparse.SUPPRESS)
    sizes = parser.parse_args()
    if sizes.worker:
        torch_worker(sizes)
        return
    with tempfile.TemporaryDirectory() as folder:
        if sizes.timeline:
            timeline(sizes, folder)
        else:
            table(sizes, folder)


if __name__ == "__main__":
    main()
