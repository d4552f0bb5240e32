#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Stands in for the programs that bench/gpu/run_all.sh runs, under whose names it is linked. Some kernels hang, fault or
# are wrong.
hanging=bfloat16.wgmma.128x256x64.cluster2
faulting=half.mma.128x256x32
wrong=bfloat16.wgmma.64x256x64.pingpong.cluster2

case "$(basename "$0") $*" in
    'nvidia-smi -L') echo 'GPU 0: stand-in' ;;
    'nvidia-smi '*) echo 'stand-in, 9.0' ;;
    'exactness --rows') printf '%s\n' float.simt.64x64x16 half.wmma.128x128x32 $hanging $faulting $wrong half.wmma.last ;;
    "exactness $hanging") exec sleep 1000 ;;
    "exactness $faulting") kill -SEGV $$ ;;
    "exactness $wrong")
        echo "$1,wrong,100,1,(0 0) is 1 instead of 2"
        exit 1
        ;;
    exactness*) echo "$1,ok,100,0," ;;
    *' --rows'*) printf '%s\n' 'table: first' 'table: second, of two' ;;
    train_digits*) ;;
    *.csv*)
        printf 'program,table,row\n%s,table,%s\n' "$(basename "$0")" "${*: -1}" >"$1"
        for kernel in ${MP_EXCLUDED_KERNELS:-}; do echo "without $kernel"; done
        ;;
    'test_cuda '*'cross entropy'*)
        echo 'cudaDeviceSynchronize: unspecified launch failure (cudaErrorLaunchFailure, 719)'
        exit 1
        ;;
    'test_cuda '*'attention with a mask'*) echo '[doctest] test cases: 0 | 0 passed' ;;
    'test_cuda '*'batches and slices'*) exit 77 ;;
    test_cuda*) echo '[doctest] test cases: 1 | 1 passed' ;;
esac
