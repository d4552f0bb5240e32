#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Line and branch coverage of include/mp by the test suite, with g++ and gcov.

    python3 tests/coverage/coverage.py measure numbers/format arrays     # whole modules or layers ...
    python3 tests/coverage/coverage.py measure linalg/gemm/layouts      # ... or single sources of them
    python3 tests/coverage/coverage.py table > coverage.txt        # of everything that was measured

Each source becomes a program of its own with tests/main.cpp, is run, and leaves which lines and branches of which
header it reached in build/coverage/<module>/<source>.json; so any subset can be measured, and later others be added.
`measure` leaves out what is measured already (--again does not). A program that is not done in time is ended by a
signal, and counts as far as it came only if its counters were written; tests that fail count, and are named.

gcov knows the code that the compiler made: lines of templates and inline functions that no program instantiates
are not counted at all, neither is code that only runs while the compiler evaluates constants. Of several
instances of a template, a line or a branch counts as reached if one instance reached it. Not among the
branches are those that only an exception takes, and those of functions that were inlined wherever they are called.
"""
import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUTPUT = os.path.join(ROOT, "build", "coverage")
INCLUDE = os.path.join(ROOT, "include", "mp")
# Sources that are compiled in other ways, or need what not everyone has.
NOT_ALONE = {"frontends/interop/mpi", "frontends/interop/nccl"}


def sources_of(names):
    """tests/<module>/<source>.cpp, and those in thorough/, of the layers, modules and sources that were named."""
    found = []
    for name in names:
        folder = os.path.join(ROOT, "tests", name)
        if not os.path.isdir(folder):
            found.append(name)
            continue
        modules = [folder] + [entry.path for entry in os.scandir(folder) if entry.is_dir() and "/" not in name]
        modules += [thorough for m in modules if os.path.isdir(thorough := os.path.join(m, "thorough"))]
        found += sorted(f"{os.path.relpath(m, os.path.join(ROOT, 'tests'))}/{f[:-4]}" for m in modules
                        for f in os.listdir(m) if f.endswith(".cpp"))
    return [name for name in found if name not in NOT_ALONE]


def reached(object_file):
    """gcov's answer for one object: header -> {"lines": {line: 0 or 1}, "branches": {"line:index": 0 or 1}}."""
    answer = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", object_file],
                            cwd=ROOT, capture_output=True, check=True).stdout
    headers = {}
    for text in answer.splitlines():
        for file in json.loads(text)["files"]:
            path = os.path.normpath(os.path.join(ROOT, file["file"]))
            if not path.startswith(INCLUDE + os.sep):
                continue
            header = headers.setdefault(os.path.relpath(path, INCLUDE), {"lines": {}, "branches": {}})
            for line in file["lines"]:
                merge(header["lines"], str(line["line_number"]), int(line["count"] > 0))
            # Lines without a function list the copies in all functions that something was inlined into, one
            # after another. They are folded where it is known how many branches a copy has.
            lines = [(line["line_number"], line.get("function_name"), [b for b in line["branches"] if not b["throw"]])
                     for line in file["lines"]]
            sizes = {}
            for number, function, ways in lines:
                if function:
                    sizes[number] = max(sizes.get(number, 0), len(ways))
            for number, function, ways in lines:
                size = sizes.get(number, 0)
                # One way alone is no branch: the other one was an exception's.
                if size > 1 and (function or len(ways) % size == 0):
                    for index, branch in enumerate(ways):
                        merge(header["branches"], f"{number}:{index % size}", int(branch["count"] > 0))
    return headers


def merge(into, key, hit):
    into[key] = max(into.get(key, 0), hit)


def run(command, **more):
    start = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, **more)
    return done, time.monotonic() - start


def measure(name, options):
    stem = os.path.join(OUTPUT, name)
    if options.recount:
        with open(stem + ".json") as file:
            summary = json.load(file)
        summary["headers"] = reached(stem + ".gcda")
        with open(stem + ".json", "w") as file:
            json.dump(summary, file)
        return
    if os.path.exists(stem + ".json") and not options.again:
        return
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    compiler = ["nice", "-n", "5", options.compiler, "-std=c++20", *options.flags.split(), "-Iinclude", "-Itests",
                f'-DMP_SOURCE_DIR="{ROOT}"', "-pthread"]
    main = os.path.join(OUTPUT, "main.o")
    if not os.path.exists(main):
        run([*compiler, "-c", "tests/main.cpp", "-o", main], check=True)
    if os.path.exists(stem + ".gcda"):
        os.remove(stem + ".gcda")
    # Atomic counters, which -pthread asks for, take ten times as long, and whether a count is zero needs none.
    counters = ["--coverage", "-fprofile-update=single"]
    libraries = ["-lmpfr", "-lgmp"] if "/mpfr/" in name else []
    built, compile_time = run([*compiler, *counters, "-c", f"tests/{name}.cpp", "-o", stem + ".o"])
    if built.returncode == 0:
        built, _ = run([*compiler, *counters, stem + ".o", main, *libraries, "-o", stem + ".x"])
    if built.returncode != 0:
        print(f"{name}: does not compile\n{built.stderr.decode()[-2000:]}", file=sys.stderr)
        return
    tested, run_time = run(["nice", "-n", "5", "timeout", "-s", "INT", str(options.time_limit), stem + ".x"])
    result = {0: "passed", 124: "ended after the time limit"}.get(tested.returncode, "failed")
    if not os.path.exists(stem + ".gcda"):
        print(f"{name}: {result}, no counters were written", file=sys.stderr)
        return
    summary = {"flags": options.flags, "result": result, "compile_seconds": round(compile_time, 1),
               "run_seconds": round(run_time, 1), "headers": reached(stem + ".o")}
    with open(stem + ".json", "w") as file:
        json.dump(summary, file)
    os.remove(stem + ".x")
    os.remove(stem + ".o")
    print(f"{name}: {result}, compiled in {compile_time:.1f} s, ran {run_time:.1f} s", flush=True)


def summaries():
    for folder, _, files in sorted(os.walk(OUTPUT)):
        for file in sorted(f for f in files if f.endswith(".json")):
            with open(os.path.join(folder, file)) as text:
                yield os.path.relpath(os.path.join(folder, file), OUTPUT)[:-5], json.load(text)


def share(hits):
    return f"{sum(hits)} of {len(hits)} ({100 * sum(hits) / len(hits):.1f} %)" if hits else "none"


def print_table(rooms, per_header):
    """In Markdown: rooms of include/mp, or their headers, and the programs that were run."""
    headers, programs = {}, {}
    for name, summary in summaries():
        room, source = name.split("/", 1)
        programs.setdefault(room, []).append((source, summary["result"]))
        for header, found in summary["headers"].items():
            for kind in ("lines", "branches"):
                into = headers.setdefault(header, {"lines": {}, "branches": {}})[kind]
                for key, hit in found[kind].items():
                    merge(into, key, hit)
    groups = {}
    for header, found in headers.items():
        room = header.split("/")[0] if "/" in header else "(public headers)"
        if rooms and room not in rooms:
            continue
        group = groups.setdefault(header if per_header else room, {"headers": 0, "lines": [], "branches": []})
        group["headers"] += 1
        group["lines"] += found["lines"].values()
        group["branches"] += found["branches"].values()
    print("| include/mp | headers seen | lines reached | branches taken |\n|---|---:|---:|---:|")
    for room, group in sorted(groups.items()):
        print(f"| {room} | {group['headers']} | {share(group['lines'])} | {share(group['branches'])} |")
    print("\nPrograms that were run:\n")
    for room, names in sorted(programs.items()):
        told = ", ".join(n if result == "passed" else f"{n} ({result})" for n, result in names)
        print(f"- `tests/{room}`: {told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure", help="compile, run and count")
    one.add_argument("names", nargs="+", help="rooms of tests/, or <room>/<source>")
    one.add_argument("--again", action="store_true", help="also what was measured before")
    one.add_argument("--recount", action="store_true", help="only read the counters of the last run again")
    one.add_argument("--compiler", default="g++")
    one.add_argument("--flags", default="-Og")
    one.add_argument("--time-limit", type=int, default=300, help="seconds for each program")
    other = commands.add_parser("table", help="what was measured, as Markdown")
    other.add_argument("rooms", nargs="*", help="rooms of include/mp; all without")
    other.add_argument("--headers", action="store_true", help="a line for each header instead of each room")
    options = parser.parse_args()
    if options.command == "table":
        return print_table(options.rooms, options.headers)
    for name in sources_of(options.names):
        measure(name, options)


if __name__ == "__main__":
    main()
