#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds the programs that run_all.sh runs, and gathers them in a folder, with the script and its data, for machines
# that have a device and nothing else: no network, no packages, no compiler.
#
#   bench/gpu/build_bundle.sh --architecture 90a   for devices of this architecture; needs nvcc and no device.
#                                                  Without the option: the architecture of the first device
#   bench/gpu/build_bundle.sh --dry-run            for the simulated GPU; needs neither
#   bench/gpu/build_bundle.sh --build FOLDER ...   the build folder (build/gpu, build/gpu-dry-run)
#
# The bundle is FOLDER/bundle. The script fails if it is larger than 45 MiB.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_folder=$(cd "$here/../.." && pwd)
readonly here source_folder max_mebibytes=45

fail() {
    printf 'build_bundle.sh: %s\n' "$1" >&2
    exit 2
}

kind=cuda
build=
architecture=
while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) kind=simulated ;;
        --build | --architecture)
            [ $# -gt 1 ] || fail "$1 needs a value"
            if [ "$1" = --build ]; then build=$2; else architecture=$2; fi
            shift
            ;;
        *) fail "unknown option '$1'" ;;
    esac
    shift
done

suffix=
# Older systems lack the libraries of the compiler.
options=(-DCMAKE_BUILD_TYPE=Release -DMP_WERROR=ON -DMP_BUILD_TESTS=ON -DMP_BUILD_EXAMPLES=ON
    "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc")
tests=()
if [ $kind = simulated ]; then
    suffix=_dry_run
    build=${build:-$source_folder/build/gpu-dry-run}
    # Compiled as quickly as the tests.
    options+=(-DMP_BUILD_CUDA=OFF "-DCMAKE_CXX_FLAGS_RELEASE=-Og -DNDEBUG" -DMP_TEST_BATCH=auto)
else
    build=${build:-$source_folder/build/gpu}
    tests=(test_cuda test_cuda_fast_math)
    [ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
    if [ -z "$architecture" ]; then
        architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
        # wgmma is in code for this very architecture only.
        [ "$architecture" = 90 ] && architecture=90a
    fi
    [ -n "$architecture" ] || fail "there is no device here: name the --architecture, such as 90a"
    # Machine code for one architecture, compressed.
    options+=(-DMP_BUILD_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$architecture-real"
        -DCMAKE_CUDA_FLAGS=--compress-mode=size)
fi

benchmarks=(exactness gemm arrays optimizers tensor_cores)
targets=("${benchmarks[@]/%/$suffix}")
"$source_folder/.ci/setup" test &&
    cmake -S "$source_folder" -B "$build" -G Ninja "${options[@]}" &&
    cmake --build "$build" --target bench_gpu_report "${targets[@]/#/bench_gpu_}" "${tests[@]}" train_digits || exit 1

bundle=$build/bundle
rm -rf "$bundle" && mkdir -p "$bundle" || exit 1
# gather NAME PATH: copies a program of the build folder without symbols.
gather() { strip -o "$bundle/$1" "$build/$2" || exit 1; }
for name in "${benchmarks[@]}"; do gather "$name" "bench/gpu/bench_gpu_$name$suffix"; done
for name in "${tests[@]}"; do gather "$name" "tests/device/cuda/$name"; done
gather report bench/gpu/bench_gpu_report
gather train_digits examples/train_digits
cp "$here/run_all.sh" "$here/steps.txt" "$source_folder/examples/data/digits.csv" "$bundle" || exit 1
{
    printf 'kind: %s\n' "$kind"
    printf 'commit: %s\n' "$(git -C "$source_folder" describe --always --dirty 2>/dev/null || echo unknown)"
    [ $kind = simulated ] ||
        printf 'compiler: nvcc %s for %s\n' "$(nvcc --version | sed -n 's/.*, \(V.*\)/\1/p')" "$architecture"
} >"$bundle/bundle.txt"
mebibytes=$((($(du -sb "$bundle" | cut -f 1) + (1 << 20) - 1) >> 20))
printf 'bundle: %s, %d MiB\n' "$bundle" "$mebibytes"
[ "$mebibytes" -le "$max_mebibytes" ] || fail "the bundle is larger than $max_mebibytes MiB"
