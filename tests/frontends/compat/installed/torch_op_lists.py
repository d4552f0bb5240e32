# SPDX-License-Identifier: MIT
"""Compares the op lists of PyTorch with what an installed torch does.

    python3 torch_op_lists.py PROGRAM [--print]

PROGRAM prints the lists of the library, see print_op_lists.cpp. Names are those for which torch's dispatcher has a kernel
under the keys of autocast. What such a kernel does is seen by calling it with fake tensors, which need no device: which
casts reach the dispatcher before the op itself. --print shows what torch has. Exits with 77 where there is no torch.
"""
import logging
import subprocess
import sys
import warnings

SKIPPED = 77
DEVICES = {"cuda": "CUDA", "cpu": "CPU", "mps": "MPS"}

try:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)

logging.disable(logging.CRITICAL)  # of calls that fail behind the casts
FULL = torch.float32


class CastsBefore(TorchDispatchMode):
    """The types that arguments are cast to before the first other op, and whether that op is told to give floats."""

    def __init__(self):
        super().__init__()
        self.casts = []
        self.asks_for_float = False
        self.op_seen = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.op_seen:
            if function is torch.ops.aten._to_copy.default:
                self.casts.append(kwargs.get("dtype"))
            elif function.namespace == "aten" and "view" not in str(function) and "alias" not in str(function):
                self.op_seen = True
                self.asks_for_float = FULL in (*args, *kwargs.values()) or self.half_to_float(function, args)
        return function(*args, **kwargs)

    @staticmethod
    def half_to_float(function, args):
        return str(function) in ("aten._softmax.default", "aten._log_softmax.default") and args[-1] is True


def argument(parameter, tensors, dtype_option):
    """Something that an op may take for a parameter: only types matter, for what comes after the casts may fail."""
    kind = str(parameter.type)
    if parameter.name == "dtype" and "int" in kind:
        return dtype_option
    if parameter.has_default_value() and "Tensor" not in kind:
        return parameter.default_value
    if "Tensor" in kind and ("List" in kind or "[]" in kind):
        return [tensors(), tensors()]
    if "Tensor" in kind:
        return None if "Optional" in kind else tensors()
    if "List" in kind or "[]" in kind:
        return [True] if "bool" in kind else ["a"] if "str" in kind else [1, 1]
    if "Optional" in kind:
        return None
    return {"bool": False, "float": 0.5, "str": "sum" if parameter.name != "equation" else "ij,jk"}.get(kind, 1)


def probe(overload, device, low, of_types, dtype_option=None):
    """Casts, requests for float and the error of a call whose tensors have these types by turns."""
    turn = [0]

    def tensors():
        turn[0] += 1
        return torch.empty(4, 4, device=device, dtype=of_types[(turn[0] - 1) % len(of_types)])

    error = result = None
    seen = CastsBefore()
    with FakeTensorMode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        named = {p.name: argument(p, tensors, dtype_option) for p in overload._schema.arguments}
        positional = [named.pop(p.name) for p in overload._schema.arguments if not p.kwarg_only]
        torch.set_autocast_enabled(device, True)
        torch.set_autocast_dtype(device, low)
        torch.set_autocast_cache_enabled(False)
        try:
            with seen:
                result = overload(*positional, **named)
        except Exception as failure:  # pylint: disable=broad-except
            error = str(failure)
        finally:
            torch.set_autocast_enabled(device, False)
    if isinstance(result, torch.Tensor) and result.dtype == FULL and not seen.casts:
        seen.asks_for_float = True
    return seen, error


def category(overload, device, low):
    """What autocast does with one overload, in the words of mp::op_category."""
    down, error = probe(overload, device, low, [FULL])
    if error and "unsafe to autocast" in error:
        return "banned"
    up, _ = probe(overload, device, low, [low])
    mixed = [probe(overload, device, low, types)[0] for types in ([low, FULL], [FULL, low])]
    if low in down.casts:
        return "lower_precision"
    has_dtype = any(p.name == "dtype" for p in overload._schema.arguments)
    if FULL in up.casts and not (has_dtype and FULL not in probe(overload, device, low, [low], torch.float64)[0].casts):
        return "full_precision"
    if up.asks_for_float or FULL in up.casts:
        return "full_precision_output" if has_dtype else "append_output_type"
    if any(FULL in seen.casts for seen in mixed):
        return "promote"
    return "unknown"


def of_torch(device):
    """The categories of the overloads of every op that autocast has a kernel for."""
    low = torch.bfloat16 if device == "cpu" else torch.float16
    ops = {}
    for full_name in torch._C._dispatch_get_all_op_names():
        if not torch._C._dispatch_has_kernel_for_dispatch_key(full_name, "Autocast" + DEVICES[device]):
            continue
        namespace, name = full_name.split("::")
        name, _, overload = name.partition(".")
        if namespace != "aten":
            continue
        packet = getattr(torch.ops.aten, name)
        ops.setdefault(name, set()).add(category(getattr(packet, overload or "default"), device, low))
    return ops


def of_library(program):
    """{list: (version, {op: category})} of the newest lists, and those of earlier versions."""
    lists = {}
    for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
        name, version, op, what = line.split()
        lists.setdefault((name, version), {})[op] = what
    return lists


def number(version):
    return [int(part) for part in version.split("+")[0].split(".")[:2]]


def main():
    lists = of_library(sys.argv[1])
    differences = unseen = compared = 0
    for device in DEVICES:
        found = of_torch(device)
        if "--print" in sys.argv:
            for op in sorted(found):
                print(device, op, *sorted(found[op]))
        name = "pytorch_" + device
        versions = sorted((v for n, v in lists if n == name), key=number)
        fitting = [v for v in versions if number(v) <= number(torch.__version__)]
        if not fitting:
            print(f"skipped: torch {torch.__version__} is older than {name} of {versions[0]}")
            sys.exit(SKIPPED)
        wanted = lists[name, fitting[-1]]
        for op in sorted(found.keys() | wanted.keys()):
            there = found.get(op, {"no kernel"})
            here = wanted.get(op, "no rule")
            compared += 1
            if "unknown" in there and op in wanted:
                there = there - {"unknown"} or {here}
                unseen += 1
                print(f"{name} {fitting[-1]}: {op} could not be called for all of its overloads")
            if there != {here}:
                differences += 1
                print(f"{name} {fitting[-1]}: {op} is {here}, in torch {torch.__version__} {' and '.join(sorted(there))}")
    print(f"{compared} ops of torch {torch.__version__}: {differences} differ, {unseen} could not be called")
    sys.exit(1 if differences or unseen > compared // 10 else 0)


main()
