#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Everything that wants a GPU: which kernels of matrix products are right, how fast everything is, all tests on the
# device and under compute-sanitizer, and questions to the tensor cores. Writes tables, a page and an archive, and writes
# them anew after every step, so that a run that is cut off leaves what it has.
#
#   bench/gpu/run_all.sh OUT                      all of it; the results go into the folder OUT
#   bench/gpu/run_all.sh OUT --seconds 600        no longer than that; what is not reached is listed. Building
#                                                 counts, and is not cut off: build before, with --only build
#   bench/gpu/run_all.sh OUT --only gemm,report   some of the steps, of the list below
#   bench/gpu/run_all.sh OUT --dry-run            the same on the simulated GPU: no device, no nvcc
#   bench/gpu/run_all.sh OUT --build FOLDER       the build folder (build/gpu, build/gpu-dry-run)
#   bench/gpu/run_all.sh OUT --architecture 90a   what nvcc compiles for (that of the first device)
#
# Steps, in this order: build exactness gemm arrays optimizers training tensor_cores tests sanitizers report.
#
# For a machine that has a device and nothing else, no network, no packages: build elsewhere, where no device is needed,
#
#   bench/gpu/run_all.sh OUT --only build --architecture 90a
#
# which gathers the programs and this script in FOLDER/bundle. Take that folder along and run its run_all.sh OUT there.
# Ends with a line a step, and not with 0 when one failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# A bundle has this script beside its programs.
is_bundle=false
[ -f "$here/bundle.txt" ] && is_bundle=true

fail() {
    printf '%s: %s\n' "run_all.sh" "$1" >&2
    exit 2
}

out=
dry_run=false
build=
architecture=
budget=
all_steps=" build exactness gemm arrays optimizers training tensor_cores tests sanitizers report "
steps=$all_steps
$is_bundle && grep -q '^kind: simulated' "$here/bundle.txt" && dry_run=true
while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=true ;;
        --only | --build | --architecture | --seconds)
            [ $# -gt 1 ] || fail "$1 needs a value"
            case $1 in
                --only) steps=" ${2//,/ } " ;;
                --build) build=$2 ;;
                --architecture) architecture=$2 ;;
                --seconds)
                    [[ $2 =~ ^[1-9][0-9]*$ ]] || fail "--seconds is '$2'; it must be a whole number above 0"
                    budget=$2
                    ;;
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
for step in $steps; do
    [[ $all_steps == *" $step "* ]] || fail "there is no step '$step'; there are:$all_steps"
done
if $is_bundle; then steps=${steps/ build / }; fi
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
wants() { [[ $steps == *" $1 "* ]]; }

if $dry_run; then
    kind=simulated
    suffix=_dry_run
else
    kind=cuda
    suffix=
    [ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
    if [ "$steps" != " build " ] && ! nvidia-smi -L >/dev/null 2>&1; then
        fail "there is no CUDA device here (nvidia-smi finds none); try --dry-run, or --only build"
    fi
fi
if $is_bundle; then
    bundle=$here
else
    source_folder=$(cd "$here/../.." && pwd)
    build=${build:-$source_folder/build/gpu$($dry_run && echo -dry-run)}
    bundle=$build/bundle
fi

# program <name>: where it is, in a bundle or in a build folder, whose own bundle may be older.
program() {
    local path
    if ! $is_bundle; then
        for path in "$build"/{"bench/gpu/bench_gpu_$1$suffix","bench/gpu/bench_gpu_$1","tests/device/cuda/$1","tests/$1","examples/$1"}; do
            if [ -x "$path" ] && [ -f "$path" ]; then
                printf '%s' "$path"
                return
            fi
        done
    fi
    printf '%s' "$bundle/$1"
}

# --- where this runs

describe() {
    date -u '+date: %Y-%m-%d %H:%M UTC'
    if $is_bundle; then
        sed -n '/^commit: /p; /^compiler: /p' "$bundle/bundle.txt"
    else
        printf 'commit: %s\n' "$(git -C "$source_folder" describe --always --dirty 2>/dev/null || echo unknown)"
        ! $dry_run && command -v nvcc >/dev/null && printf 'compiler: nvcc %s\n' "$(nvcc --version | sed -n 's/.*, \(V.*\)/\1/p')"
    fi
    if $dry_run; then
        printf 'device: none; all of this is a dry run on the simulated GPU, and no time means anything\n'
    elif command -v nvidia-smi >/dev/null; then
        nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit,clocks.max.sm,clocks.max.memory \
            --format=csv,noheader 2>/dev/null | sed 's/^/device: /'
    fi
    printf 'command: run_all.sh --only %s%s\n' "$(xargs <<<"$steps" | tr ' ' ,)" "${budget:+ --seconds $budget}"
}
describe >"$out/machine.txt"
cat "$out/machine.txt"

# --- running steps

report=()
failures=0
deadline=${budget:+$((SECONDS + budget))}

# Brings tables, page and archive up to date with what there is.
refresh() {
    printf '%s\n' "${report[@]:-}" >"$out/summary.txt"
    if compgen -G "$out/*_$kind.csv" >/dev/null || [ -f "$out/exactness.csv" ]; then
        timeout 60 "$(program report)" "$out" "$kind" >"$out/report.log" 2>&1 || return 1
    fi
    # One of the files may grow meanwhile, of which tar complains with 1.
    (cd "$out" && shopt -s nullglob && tar -czf .results.tar.gz -- *.txt *.csv *.md *.html *.log; [ $? -le 1 ]) &&
        mv "$out/.results.tar.gz" "$out/results.tar.gz"
}

# seconds_left <limit>: what a step may take.
seconds_left() {
    local left=$1
    if [ -n "$deadline" ] && [ $((deadline - SECONDS - 3)) -lt "$left" ]; then left=$((deadline - SECONDS - 3)); fi
    printf '%s' "$left"
}

# note <step> <start> <result>
note() { report+=("$(printf '%-28s %5d s  %s' "$1" $((SECONDS - $2)) "$3")"); }

# run <step>[.<part>] <seconds> <command>...: output goes to the terminal and to OUT/<step>.log.
run() {
    local name=$1 start=$SECONDS status=0 limit
    wants "${name%%.*}" || return 0
    limit=$(seconds_left "$2")
    shift 2
    if [ "$limit" -lt 2 ]; then
        note "$name" "$start" 'not begun: no time left'
        return 0
    fi
    printf '\n=== %s: %s\n' "$name" "$*"
    if [ "$(type -t "$1")" = function ]; then
        ("$@") 2>&1 | tee "$out/$name.log" || status=$?
    else
        timeout "$limit" "$@" 2>&1 | tee "$out/$name.log" || status=$?
    fi
    case $status in
        0) note "$name" "$start" ok ;;
        124) note "$name" "$start" "CUT OFF after $limit s" ;;
        *) note "$name" "$start" "FAILED: status $status" ;;
    esac
    if [ $status -ne 0 ] && { [ $status -ne 124 ] || [ -z "$deadline" ]; }; then failures=$((failures + 1)); fi
    [ "$name" = build ] || refresh
    return $status
}

# --- build

# The programs that the steps are made of, by their names in a bundle, and their targets.
programs=(exactness gemm arrays optimizers tensor_cores report)
targets=(bench_gpu_report)
for name in exactness gemm arrays optimizers tensor_cores; do targets+=("bench_gpu_$name$suffix"); done
if $dry_run; then
    tests=(test_simt test_gpu)
else
    tests=(test_cuda test_cuda_fast_math)
fi

build_all() {
    # A rehearsal is compiled as the tests are: quickly.
    local options=(-DMP_BUILD_CUDA=OFF "-DCMAKE_CXX_FLAGS_RELEASE=-Og -DNDEBUG" -DMP_TEST_BATCH=auto)
    if ! $dry_run; then
        if [ -z "$architecture" ]; then
            architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
            # Hopper's own matrix instructions are in code for this very architecture only.
            [ "$architecture" = 90 ] && architecture=90a
        fi
        [ -n "$architecture" ] || { echo "say --architecture where there is no device"; return 1; }
        # Machine code for one architecture, packed small.
        options=(-DMP_BUILD_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$architecture-real" -DCMAKE_CUDA_FLAGS=--compress-mode=size)
    fi
    # The libraries of the compiler may be older where the programs run.
    "$source_folder/.ci/setup" test &&
        cmake -S "$source_folder" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMP_WERROR=ON \
            -DMP_BUILD_TESTS=ON -DMP_BUILD_EXAMPLES=ON "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc" \
            "${options[@]}" &&
        cmake --build "$build" --target "${targets[@]}" "${tests[@]}" train_digits && gather
}

# Copies all programs, without symbols, and what they need into the bundle, and says how large it is.
gather() {
    local name
    rm -rf "$bundle" && mkdir -p "$bundle" || return 1
    for name in "${programs[@]}" "${tests[@]}" train_digits; do
        strip -o "$bundle/.$name" "$(program "$name")" && mv "$bundle/.$name" "$bundle/$name" || return 1
    done
    cp "$here/run_all.sh" "$source_folder/examples/data/digits.csv" "$bundle" || return 1
    {
        printf 'kind: %s\n' "$kind"
        describe | sed -n '/^commit: /p; /^compiler: /p'
    } >"$bundle/bundle.txt"
    printf 'bundle: %s, %d MiB\n' "$bundle" $(($(du -sb "$bundle" | cut -f 1) >> 20))
}
if wants build; then
    run build 3600 build_all || { printf '%s\n' "${report[@]}"; exit 1; }
fi

# Clocks, power and temperature all the time: figures without them cannot be compared.
if ! $dry_run && [ "$steps" != " build " ]; then
    nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active \
        --format=csv -l 1 >"$out/clocks.csv" 2>/dev/null &
    clock_watch=$!
    trap 'kill $clock_watch 2>/dev/null' EXIT
fi

# --- which kernels are right: a process each, since a failed launch takes the process's device with it

try_kernels() {
    local wrong=0 name line status
    printf 'name,result,elements,different,what\n' >"$out/exactness.csv"
    for name in $("$(program exactness)"); do
        status=0
        [ "$(seconds_left 30)" -ge 2 ] || { echo "no time left for $name"; break; }
        line=$(timeout "$(seconds_left 30)" "$(program exactness)" "$name" 2>>"$out/exactness.errors.log") || status=$?
        [ -n "$line" ] || line="$name,FAILED,0,0,ends with status $status"
        printf '%s\n' "$line" | tee -a "$out/exactness.csv"
        [ $status -eq 0 ] || wrong=$((wrong + 1))
    done
    # Nothing tried is nothing found out.
    printf '%d right, %d wrong, %d not here\n' "$(grep -c ',right,' "$out/exactness.csv")" "$wrong" \
        "$(grep -c ',not here,' "$out/exactness.csv")"
    [ "$wrong" -eq 0 ] && grep -q ',right,' "$out/exactness.csv"
}
if wants exactness; then
    run exactness 300 try_kernels
fi

# --- figures

# The peer of the products, where it is not where the system looks.
if wants gemm && ! $dry_run && [ -z "${MP_CUBLASLT:-}" ] && ! ldconfig -p 2>/dev/null | grep -q libcublasLt; then
    found=$(timeout 20 find /usr/local /opt /usr/lib /root -name 'libcublasLt.so.*' -type f 2>/dev/null | sort -V | tail -n 1)
    [ -z "$found" ] || export MP_CUBLASLT=$found
fi
for type in bfloat16 float8 scaled schedules integers groups half tfloat32; do
    run gemm.$type 300 "$(program gemm)" "$out/gemm_${type}_$kind.csv" $type
done
for name in arrays optimizers; do
    run $name 300 "$(program $name)" "$out/${name}_$kind.csv"
done
digits=$bundle/digits.csv
[ -f "$digits" ] || digits=${source_folder:-}/examples/data/digits.csv
if $dry_run; then
    run training 600 "$(program train_digits)" --data "$digits" --epochs 1 --repeats 1 --loss-weight 1 \
        --report "$out/train_digits.html"
else
    run training 300 "$(program train_digits)" --data "$digits" --device cuda --report "$out/train_digits.html"
fi
run tensor_cores 300 "$(program tensor_cores)" "$out/tensor_cores.csv"

# --- the device gives the bits that it should

# What takes longest is left out under the sanitizers: it repeats with many or large sizes what others do with few.
readonly sanitized='--test-case-exclude=*alignments and sizes*,*within the bound*,*depend on the tile*'
if $dry_run; then
    run tests.simt 1200 "$(program test_simt)"
    run tests.gpu 1800 "$(program test_gpu)"
    # The simulated GPU checks on every access what these tools look for.
    run sanitizers 60 echo "compute-sanitizer test_cuda $sanitized"
else
    run tests.cuda 1200 "$(program test_cuda)" --duration=true
    run tests.fast_math 600 "$(program test_cuda_fast_math)" --duration=true
    for tool in memcheck racecheck initcheck synccheck; do
        run sanitizers.$tool 300 compute-sanitizer --tool $tool --error-exitcode 3 "$(program test_cuda)" "$sanitized"
    done
fi

if wants report && ! refresh; then
    note report $SECONDS "FAILED: see report.log"
    failures=$((failures + 1))
fi
printf '\n=== summary, %d s; results are in %s\n' $SECONDS "$out"
printf '%s\n' "${report[@]:-}" | tee "$out/summary.txt"
[ $failures -eq 0 ]
