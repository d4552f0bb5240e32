#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Everything that wants a GPU: builds, runs all tests on the device, runs them under compute-sanitizer, asks the
# tensor cores what their models leave open, measures, and writes tables and a page.
#
#   bench/gpu/run_all.sh OUT                      all of it; the results go into the folder OUT
#   bench/gpu/run_all.sh OUT --dry-run            the same on the simulated GPU: no device, no nvcc
#   bench/gpu/run_all.sh OUT --only tests,gemm    some of the steps, of the list below
#   bench/gpu/run_all.sh OUT --build FOLDER       the build folder (build/gpu, build/gpu-dry-run)
#   bench/gpu/run_all.sh OUT --architecture 90a   what nvcc compiles for (that of the first device)
#
# Steps: build tests sanitizers tensor_cores gemm arrays optimizers training report. A build folder that was filled
# elsewhere, on a machine with the packages of the tests, does with the other steps: --only tests,...,report.
# Ends with a line a step, and not with 0 when one failed.
set -uo pipefail
source_folder=$(cd "$(dirname "$0")/../.." && pwd)

fail() {
    printf '%s: %s\n' "bench/gpu/run_all.sh" "$1" >&2
    exit 2
}

out=
dry_run=false
build=
architecture=
steps=build,tests,sanitizers,tensor_cores,gemm,arrays,optimizers,training,report
while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=true ;;
        --only | --build | --architecture)
            [ $# -gt 1 ] || fail "$1 needs a value"
            case $1 in
                --only) steps=$2 ;;
                --build) build=$2 ;;
                --architecture) architecture=$2 ;;
            esac
            shift
            ;;
        -*) fail "unknown option '$1'" ;;
        *)
            [ -z "$out" ] || fail "name one folder for the results, not also '$1'"
            out=$1
            ;;
    esac
    shift
done
[ -n "$out" ] || fail "name the folder that the results go to"
known=" build tests sanitizers tensor_cores gemm arrays optimizers training report "
for step in ${steps//,/ }; do
    [[ $known == *" $step "* ]] || fail "there is no step '$step'; there are:$known"
done
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)

if $dry_run; then
    build=${build:-$source_folder/build/gpu-dry-run}
    kind=simulated
    suffix=_dry_run
else
    build=${build:-$source_folder/build/gpu}
    kind=cuda
    suffix=
    [ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
    nvidia-smi -L >/dev/null 2>&1 || fail "there is no CUDA device here (nvidia-smi finds none); try --dry-run"
fi
readonly programs=$build/bench/gpu tests=$build/tests

wants() { [[ ",$steps," == *",$1,"* ]]; }

report=()
failures=0
# run <step> <seconds> <command>...: the step's output goes to the terminal and to OUT/<step>.log.
run() {
    local name=$1 limit=$2 start=$SECONDS status=0
    shift 2
    wants "${name%%.*}" || return 0
    printf '\n=== %s: %s\n' "$name" "$*"
    timeout "$limit" "$@" 2>&1 | tee "$out/$name.log" || status=$?
    local result=ok
    case $status in
        0) ;;
        124) result="FAILED: not done after $limit s" ;;
        *) result="FAILED: status $status" ;;
    esac
    [ $status -eq 0 ] || failures=$((failures + 1))
    report+=("$(printf '%-24s %5d s  %s' "$name" $((SECONDS - start)) "$result")")
    return $status
}

# --- where this runs

describe() {
    date -u '+date: %Y-%m-%d %H:%M UTC'
    printf 'commit: %s\n' "$(git -C "$source_folder" describe --always --dirty 2>/dev/null || echo unknown)"
    if $dry_run; then
        printf 'device: none; all of this is a dry run on the simulated GPU, and no time means anything\n'
        return
    fi
    nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit,clocks.max.sm,clocks.max.memory \
        --format=csv,noheader | sed 's/^/device: /'
    command -v nvcc >/dev/null && printf 'nvcc: %s\n' "$(nvcc --version | sed -n 's/.*, \(V.*\)/\1/p')"
    return 0
}
describe >"$out/machine.txt"
cat "$out/machine.txt"

# Clocks, power and temperature all the time: figures without them cannot be compared.
clock_watch=
if ! $dry_run; then
    nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active \
        --format=csv -l 1 >"$out/clocks.csv" 2>/dev/null &
    clock_watch=$!
    trap 'kill $clock_watch 2>/dev/null' EXIT
fi

# --- build

# What the steps need.
targets=(bench_gpu_report)
for name in tensor_cores gemm arrays optimizers; do
    wants $name && targets+=("bench_gpu_$name$suffix")
done
wants training && targets+=(train_digits)
if $dry_run; then
    options=(-DMP_BUILD_CUDA=OFF)
    wants tests && targets+=(test_simt test_gpu)
else
    if [ -z "$architecture" ]; then
        architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
        # Hopper's own matrix instructions are in code for this very architecture only.
        [ "$architecture" = 90 ] && architecture=90a
    fi
    options=(-DMP_BUILD_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$architecture")
    if wants tests || wants sanitizers; then targets+=(test_cuda test_cuda_fast_math); fi
fi
build_all() {
    "$source_folder/.ci/setup" test &&
        cmake -S "$source_folder" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMP_WERROR=ON \
            -DMP_BUILD_TESTS=ON -DMP_BUILD_EXAMPLES=ON "${options[@]}" &&
        cmake --build "$build" --target "${targets[@]}"
}
export source_folder build
run build 3600 bash -c "$(declare -f build_all); options=(${options[*]@Q}); targets=(${targets[*]}); build_all" ||
    { printf '%s\n' "${report[@]}"; exit 1; }

# --- the device gives the bits that it should

if $dry_run; then
    run tests.simt 1200 "$tests/test_simt"
    run tests.gpu 1800 "$tests/test_gpu"
else
    run tests.cuda 1200 "$tests/cuda/test_cuda" --duration=true
    run tests.fast_math 600 "$tests/cuda/test_cuda_fast_math" --duration=true
fi

# What takes longest is left out under the sanitizers: it repeats with many or large sizes what others do with few.
readonly sanitized='--test-case-exclude=*alignments and sizes*,*within the bound*,*depend on the tile*'
for tool in memcheck racecheck initcheck synccheck; do
    if $dry_run; then
        # The simulated GPU checks on every access what these tools look for.
        run sanitizers.$tool 60 echo "compute-sanitizer --tool $tool test_cuda $sanitized"
    else
        run sanitizers.$tool 300 compute-sanitizer --tool $tool --error-exitcode 3 "$tests/cuda/test_cuda" "$sanitized"
    fi
done

# --- questions and figures

run tensor_cores 600 "$programs/bench_gpu_tensor_cores$suffix" "$out/tensor_cores.csv"
for name in gemm arrays optimizers; do
    run $name 1200 "$programs/bench_gpu_$name$suffix" "$out/${name}_$kind.csv"
done
if $dry_run; then
    run training 600 "$build/examples/train_digits" --epochs 1 --repeats 1 --loss-weight 1 --report "$out/train_digits.html"
else
    run training 600 "$build/examples/train_digits" --device cuda --report "$out/train_digits.html"
fi
run report 60 "$programs/bench_gpu_report" "$out" "$kind"

printf '\n=== summary, %d s; results are in %s\n' $SECONDS "$out"
printf '%s\n' "${report[@]}" | tee "$out/summary.txt"
[ $failures -eq 0 ]
