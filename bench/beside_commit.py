#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A benchmark with the headers of an earlier commit beside those of the working tree: did a change cost speed?

    python3 bench/beside_commit.py 1330a7d scalar --filter='mp'
    python3 bench/beside_commit.py HEAD~1 convert --flags='-O3 -march=native' --rounds=5

Builds bench/<name>.cpp of the working tree twice, without peers, and runs both programs in turn. A figure is the
median of the rounds, each of which is a median of Google Benchmark's; the ratio is after / before, above 1 is slower.
Needs g++ and Google Benchmark; works in build/beside_commit.
"""
import argparse
import csv
import os
import shlex
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = ["EIGEN", "FP16", "HALF", "SOFTFLOAT", "OPENBLAS", "HIGHWAY", "ONEDNN"]


def build(include, name, flags, program):
    sources = [os.path.join(ROOT, "bench", f"{it}.cpp") for it in (name, "main", "limits/copies", "limits/passes", "limits/peaks")]
    subprocess.run(["g++", "-std=c++20", *shlex.split(flags), *(f"-DMP_BENCH_HAS_{it}=0" for it in PEERS),
                    "-I" + include, "-I" + os.path.join(ROOT, "bench"), *sources, "-o", program, "-lbenchmark", "-pthread"],
                   check=True)


def run(program, options, pattern):
    """Row -> nanoseconds of an element or an iteration, of one run of the program."""
    figures = program + ".csv"
    subprocess.run([program, "--csv=" + figures, "--benchmark_filter=" + pattern, *options], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = {}
    with open(figures, encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            found[(row["table"], row["row"], row["contender"])] = (
                float(row["seconds_median"]) * 1e9 / max(1.0, float(row["elements"])))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("name", help="bench/<name>.cpp")
    parser.add_argument("--flags", default="-O2")
    parser.add_argument("--filter", default=".", help="of Google Benchmark")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()

    folder = os.path.join(ROOT, "build", "beside_commit")
    old = os.path.join(folder, "include_before")
    os.makedirs(old, exist_ok=True)
    archive = subprocess.run(["git", "-C", ROOT, "archive", given.commit, "include"], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "--recursive-unlink", "-C", old], input=archive.stdout, check=True)
    programs = [os.path.join(folder, f"{given.name}_{when}") for when in ("before", "after")]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda it: build(it[0], given.name, given.flags, it[1]),
                      zip((os.path.join(old, "include"), os.path.join(ROOT, "include")), programs)))

    options = ["--quick"] if given.quick else []
    runs = ([], [])
    for turn in range(given.rounds):
        print(f"\rround {turn + 1} of {given.rounds}", end="", file=sys.stderr, flush=True)
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            runs[which].append(run(programs[which], options, given.filter))
    print(file=sys.stderr)
    print(f"`{given.flags}`, before is {given.commit}\n\n| table | row | before | after | after / before |\n|---|---|---:|---:|---:|")
    for key in runs[0][0]:
        before, after = (statistics.median(it[key] for it in figures if key in it) for figures in runs)
        table, row, contender = key
        print(f"| {table}, {contender} | {row} | {before:.3g} | {after:.3g} | {after / before:.2f} |")


if __name__ == "__main__":
    main()
