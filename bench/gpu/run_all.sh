#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs everything that needs a GPU, as the steps of steps.txt: exactness of every kernel, then figures, tests and
# sanitizers. Each step is a process with a time limit. A kernel whose exactness step fails is excluded from the steps
# after it. Summary, tables, page and archive are written after every step, so that an interrupted run leaves all that it
# has found.
#
#   bench/gpu/run_all.sh OUT                      writes the results to the folder OUT
#   bench/gpu/run_all.sh OUT --seconds 560        takes no longer; a step has at most an eighth of the time left
#   bench/gpu/run_all.sh OUT --archive FILE       writes the archive, at most 16 MiB, to FILE (OUT/results.tar.gz)
#   bench/gpu/run_all.sh OUT --only gemm,tests    runs the steps of these groups: exactness gemm arrays optimizers
#                                                 training tensor_cores tests sanitizers
#   bench/gpu/run_all.sh OUT --continue           runs the steps that an earlier run in OUT had no time for
#   bench/gpu/run_all.sh OUT --dry-run            runs on the simulated GPU
#   bench/gpu/run_all.sh OUT --build FOLDER       takes the programs of this build folder (build/gpu, build/gpu-dry-run)
#
# In a bundle (build_bundle.sh) the script takes the programs beside it. OUT/summary.txt has a line for each step: name,
# status, seconds, remark. Statuses are
#
#   ok         excluded   a kernel that the step needs has failed
#   wrong      skipped    the device does not have the kernel, or the machine not what the program needs
#   hung       missing    there is no such program
#   faulted    no time
#
# Exits with 0 if there is no step with the status wrong, hung, faulted or missing.
set -uo pipefail
ulimit -c 0
here=$(cd "$(dirname "$0")" && pwd)
readonly here groups=" exactness gemm arrays optimizers training tensor_cores tests sanitizers "
readonly max_archive_bytes=$((16 << 20)) max_log_bytes=$((1 << 19))

fail() {
    printf 'run_all.sh: %s\n' "$1" >&2
    exit 2
}

# --- options

out=
archive=
build=
budget=
chosen=$groups
dry_run=false
continues=false
is_bundle=false
if [ -f "$here/bundle.txt" ]; then
    is_bundle=true
    chmod +x "$here"/* 2>/dev/null # copying can lose the permission
    ! grep -q '^kind: simulated' "$here/bundle.txt" || dry_run=true
fi
while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=true ;;
        --continue) continues=true ;;
        --only | --build | --archive | --seconds)
            [ $# -gt 1 ] || fail "$1 needs a value"
            case $1 in
                --only) chosen=" ${2//,/ } " ;;
                --build) build=$2 ;;
                --archive) archive=$2 ;;
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
[ -n "$out" ] || fail "name the folder of the results"
for group in $chosen; do
    [[ $groups == *" $group "* ]] || fail "there are no steps '$group'; there are:$groups"
done
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
archive=${archive:-$out/results.tar.gz}
mkdir -p "$(dirname "$archive")" || exit 2
archive=$(cd "$(dirname "$archive")" && pwd)/$(basename "$archive")

[ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
kind=cuda
suffix=
training=(--device cuda)
if $dry_run; then
    kind=simulated
    suffix=_dry_run
    training=(--epochs 1 --repeats 1 --loss-weight 1)
elif ! timeout 20 nvidia-smi -L >/dev/null 2>&1; then
    fail "nvidia-smi finds no CUDA device; --dry-run needs none"
fi
source_folder=$here/../..
digits=$source_folder/examples/data/digits.csv
if $is_bundle; then digits=$here/digits.csv; fi
build=${build:-$source_folder/build/gpu$($dry_run && echo -dry-run)}

# program NAME: prints its path, in the bundle, in the build folder, or in PATH.
program() {
    local path
    if $is_bundle; then
        path=$here/$1
        if [ -x "$path" ]; then
            printf '%s' "$path"
            return
        fi
    else
        for path in "$build"/{"bench/gpu/bench_gpu_$1$suffix","bench/gpu/bench_gpu_$1","tests/device/cuda/$1","examples/$1"}; do
            if [ -x "$path" ] && [ -f "$path" ]; then
                printf '%s' "$path"
                return
            fi
        done
    fi
    type -P "$1"
}

# --- the machine

describe() {
    date -u '+date: %Y-%m-%d %H:%M UTC'
    if $is_bundle; then
        sed -n '/^commit: /p; /^compiler: /p' "$here/bundle.txt"
    else
        printf 'commit: %s\n' "$(git -C "$source_folder" describe --always --dirty 2>/dev/null || echo unknown)"
    fi
    if $dry_run; then
        printf 'device: none; this is a dry run on the simulated GPU, whose times have no meaning\n'
    else
        timeout 20 nvidia-smi --format=csv,noheader \
            --query-gpu=name,compute_cap,driver_version,memory.total,power.limit,clocks.max.sm,clocks.max.memory |
            sed 's/^/device: /'
    fi
    printf 'steps: %s%s\n' "$(xargs <<<"$chosen")" "${budget:+; at most $budget seconds}"
}

# Newest libcublasLt: the program compares the versions that the libraries report.
find_cublaslt() {
    local folders
    IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
    timeout 20 find /usr/local /opt /usr/lib /usr/lib64 ~ "${folders[@]}" -name 'libcublasLt.so*' -type f 2>/dev/null |
        paste -sd :
}

# --- results

declare -A status_of=()
failed=()
if $continues && [ -f "$out/summary.txt" ]; then
    sed -i '/\tno time\t/d' "$out/summary.txt"
    while IFS=$'\t' read -r name status _; do
        status_of[$name]=$status
        if [[ $name == exactness.* && $status =~ ^(wrong|hung|faulted)$ ]]; then failed+=("${name#exactness.}"); fi
    done <"$out/summary.txt"
else
    rm -f "$out/machine.txt" "$out"/*_"$kind".csv
    printf 'name\tstatus\tseconds\tremark\n' >"$out/summary.txt"
    printf 'name,result,elements,different,what\n' >"$out/exactness.csv"
fi
describe >>"$out/machine.txt"
cat "$out/machine.txt"

# Writes the archive under a temporary name and renames it. If it is too large, large files are left out.
write_archive() {
    local kibibytes
    for kibibytes in 1048576 4096 512 64; do
        (cd "$out" && find . -maxdepth 1 -type f ! -name '.*' ! -name '*.tar.gz*' -size "-${kibibytes}k" -print0 |
            tar -czf "$archive.part" --null -T -)
        # 1: a file, such as the clocks, has grown meanwhile.
        if [ $? -le 1 ] && [ "$(stat -c %s "$archive.part")" -le $max_archive_bytes ]; then
            mv -f "$archive.part" "$archive"
            return
        fi
    done
}

# record NAME STATUS SECONDS REMARK
record() {
    status_of[$1]=$2
    printf '%s\t%s\t%s\t%s\n' "$@" >>"$out/summary.txt"
    printf '%-9s %4d s  %s%s\n' "$2" "$3" "$1" "${4:+  ($4)}"
    if [[ $1 == exactness.* && $2 =~ ^(wrong|hung|faulted)$ ]]; then failed+=("${1#exactness.}"); fi
    if [[ ! $2 =~ ^(no\ time|excluded|missing)$ ]]; then write_archive; fi
}

# Writes the tables and the page.
write_report() {
    local report
    report=$(program report) && timeout 20 "$report" "$out" "$kind" >"$out/report.log" 2>&1
}

# --- steps

# Time for killing the last step and for the archive.
readonly reserve=7

# set_limit SECONDS: sets `limit` to the time limit of a step, at most an eighth of the time left, or to 0 if that is too
# short.
set_limit() {
    local left share
    limit=$1
    if [ -n "$budget" ]; then
        left=$((budget - reserve - SECONDS))
        share=$((left / 8 > 3 ? left / 8 : 3))
        limit=$((limit < share ? limit : share))
        limit=$((limit <= left ? limit : 0))
    fi
}

# The status of a process arrives through a pipe with the number of the process, because a process that waits for a driver
# can outlive SIGKILL.
mkfifo "$out/.ended" 2>/dev/null
exec {ended}<>"$out/.ended"
rm -f "$out/.ended"
number=0

# run_limited SECONDS LOG COMMAND...: sets `status` to the exit status, 124 or 137 if the process was killed.
run_limited() {
    local limit=$1 log=$2 whose
    shift 2
    number=$((number + 1))
    {
        timeout -k 5 "$limit" "$@"
        printf '%s %s\n' "$number" $? >&"$ended"
    } </dev/null >"$log" 2>&1 &
    while true; do
        read -r -t $((limit + 7)) -u "$ended" whose status || { whose=$number status=137; }
        if [ "$whose" = "$number" ]; then break; fi
    done
    if [ "$(stat -c %s "$log")" -gt $((2 * max_log_bytes)) ]; then
        { head -c $max_log_bytes "$log"; printf '\n...\n'; tail -c $max_log_bytes "$log"; } >"$log.part"
        mv -f "$log.part" "$log"
    fi
}

# set_result LOG: sets `result` to the name of the exit status `status`.
set_result() {
    case $status in
        0) if grep -q '^\[doctest\] test cases: *0 ' "$1"; then result=wrong; else result=ok; fi ;;
        77) result=skipped ;;
        124 | 137) result=hung ;;
        *) if [ "$status" -gt 128 ] || grep -q 'cudaError' "$1"; then result=faulted; else result=wrong; fi ;;
    esac
}

# append_rows FROM TO: appends lines of a table, whose first line is a heading.
append_rows() {
    [ -s "$1" ] || return
    [ -s "$2" ] || head -n 1 "$1" >"$2"
    tail -n +2 "$1" >>"$2"
}

# exactness_row NAME RESULT LOG: adds what exactness prints, or the result, to exactness.csv.
exactness_row() {
    local name=${1#exactness.}
    grep -m 1 "^$name," "$3" || printf '%s,%s,,,\n' "$name" "$2"
}

# run_step NAME SECONDS NEEDS COMMAND...
run_step() {
    local name=$1 seconds=$2 needs=() begin=$SECONDS limit status result remark='' log need kernel
    read -ra needs <<<"$3"
    shift 3
    if [ -n "${status_of[$name]:-}" ]; then return; fi
    for need in "${needs[@]}"; do
        for kernel in "${failed[@]}"; do
            # shellcheck disable=SC2053  # a pattern
            if [[ $kernel == $need ]]; then
                record "$name" excluded 0 "$kernel has failed"
                return
            fi
        done
    done
    set_limit "$seconds"
    if [ "$limit" -eq 0 ]; then
        record "$name" 'no time' 0 ''
        return
    fi
    log=$out/${name//[^A-Za-z0-9._-]/_}.log
    MP_EXCLUDED_KERNELS="${failed[*]}" run_limited "$limit" "$log" "$@"
    set_result "$log"
    if [[ $name == exactness.* ]]; then exactness_row "$name" "$result" "$log" >>"$out/exactness.csv"; fi
    if [ "$result" = wrong ] || [ "$result" = faulted ]; then tail -n 3 "$log"; fi
    if grep -q '^without ' "$log"; then remark="without $(sed -n 's/^without //p' "$log" | sort -u | xargs)"; fi
    record "$name" "$result" $((SECONDS - begin)) "$remark"
}

# skip NAME PROGRAM: records why a program is not run, if it is not.
skip() {
    if $dry_run && [[ $2 =~ ^(test_cuda|test_cuda_fast_math|compute-sanitizer)$ ]]; then
        record "$1" skipped 0 "$2 needs a device"
    elif [ -z "$(program "$2")" ]; then
        # The toolkit, which has the sanitizers, need not be installed.
        record "$1" "$([ "$2" = compute-sanitizer ] && echo skipped || echo missing)" 0 "there is no $2"
    else
        return 1
    fi
}

# run_rows NAME SECONDS NEEDS COMMAND...: a step for each row that the program lists; {csv} and {row} are replaced.
run_rows() {
    local name=$1 limit status result word words=() rows=() row csv=$out/.rows.csv list=$out/.rows.txt
    set_limit 20
    if [ "$limit" -eq 0 ]; then
        record "$name" 'no time' 0 ''
        return
    fi
    words=("$4" --rows)
    for word in "${@:5}"; do
        [[ $word =~ ^(--row|\{row\}|\{csv\})$ ]] || words+=("$word")
    done
    # shellcheck disable=SC2016  # for the inner shell
    run_limited "$limit" "$list" bash -c 'exec "$@" 2>"$0"' "$out/$name.rows.log" "${words[@]}"
    mapfile -t rows <"$list"
    if [ "$status" -ne 0 ] || [ ${#rows[@]} -eq 0 ]; then
        status=$((status == 0 ? 1 : status))
        set_result "$out/$name.rows.log"
        record "$name" "$result" 0 'its rows are unknown'
        return
    fi
    for row in "${rows[@]}"; do
        rm -f "$csv"
        words=()
        for word in "${@:4}"; do
            case $word in
                '{csv}') words+=("$csv") ;;
                '{row}') words+=("$row") ;;
                *) words+=("$word") ;;
            esac
        done
        run_step "$name.$row" "$2" "$3" "${words[@]}"
        append_rows "$csv" "$out/${name//./_}_$kind.csv"
    done
    write_report
}

# run_line NAME SECONDS NEEDS PROGRAM ARGUMENT...: runs the steps of a line of steps.txt.
run_line() {
    local words argument
    [[ $chosen == *" ${1%%.*} "* ]] || return
    ! skip "$1" "$4" || return
    words=("$(program "$4")")
    if [ "$4" = compute-sanitizer ]; then
        words+=(--tool "$5" --error-exitcode 3 "$(program test_cuda)" "${@:6}")
        set -- "${@:1:4}"
    fi
    for argument in "${@:5}"; do
        case $argument in
            '{training}') words+=("${training[@]}") ;;
            '{digits}') words+=("$digits") ;;
            '{out}'/*) words+=("$out/${argument#*/}") ;;
            *) words+=("$argument") ;;
        esac
    done
    if [ "${argument:-}" = '{row}' ]; then
        run_rows "${@:1:3}" "${words[@]}"
    else
        run_step "${@:1:3}" "${words[@]}"
    fi
}

# Figures cannot be compared without clocks, power and temperature.
if ! $dry_run; then
    nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active \
        --format=csv -l 1 >"$out/clocks.csv" 2>/dev/null </dev/null &
    clock_watch=$!
    trap 'kill $clock_watch 2>/dev/null' EXIT
    if [ -z "${MP_CUBLASLT:-}" ]; then
        MP_CUBLASLT=$(find_cublaslt)
        [ -z "$MP_CUBLASLT" ] || export MP_CUBLASLT
    fi
fi

while IFS='|' read -ra fields <&3; do
    [[ ${fields[*]} =~ ^[[:space:]]*(#|$) ]] && continue
    for i in "${!fields[@]}"; do read -r "fields[i]" <<<"${fields[i]}"; done
    run_line "${fields[@]}"
done 3<"$here/steps.txt"

write_report
write_archive
printf '%d s; the results are in %s and %s:\n' "$SECONDS" "$out" "$archive"
tail -n +2 "$out/summary.txt" | cut -f 2 | sort | uniq -c | sort -rn
! cut -f 2 "$out/summary.txt" | grep -qxE 'wrong|hung|faulted|missing'
