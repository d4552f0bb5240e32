# SPDX-License-Identifier: MIT
"""Compares the op lists of TensorFlow with the header of an installed TensorFlow.

    python3 tensorflow_op_lists.py PROGRAM

PROGRAM prints the lists of the library, see print_op_lists.cpp. The header auto_mixed_precision_lists.h is among the files
of the Python package; TensorFlow itself is not loaded. Exits with 77 where there is none.
"""
import importlib.util
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
HEADER = "include/tensorflow/core/grappler/optimizers/auto_mixed_precision_lists.h"
CATEGORIES = {"Allow": "lower_precision", "Infer": "promote_widest", "Deny": "full_precision", "Clear": "pass_through"}


def of_header(text, class_name, left_out):
    """{op: category} of a class; left_out is a regular expression for blocks of other modes."""
    start = re.search(r"class " + class_name + r"\b[^;{]*\{", text).end()
    text = re.split(r"\nclass |\nusing ", text[start:])[0]
    text = re.sub(r"//[^\n]*", "", text)
    for block in left_out:
        text = re.sub(r"if \(" + block + r"\) \{[^}]*\}", "", text)
    ops = {}
    functions = re.split(r"gtl::FlatSet<(?:std::)?string> (\w+)List\(\) override", text)
    for name, body in zip(functions[1::2], functions[2::2]):
        found = {op for op in re.findall(r'"(\w+)"', body) if not re.fullmatch(r"[A-Z]+LIST", op)}
        if "AddTensorListOps" in body:
            found |= TENSOR_LIST
        ops.update({op: CATEGORIES[name] for op in found})
    return ops


def number(version):
    return [int(part) for part in version.split(".")[:2]] if "." in version else [0]


def metadata(package):
    """The text that tells the version: of the package tensorflow, tensorflow_cpu or another."""
    folders = pathlib.Path(package.origin).parent.parent.glob("tensorflow*.dist-info/METADATA")
    name = re.compile(r"^Name: tensorflow(.cpu|.rocm|.intel)?$", re.MULTILINE)
    return next(text for text in (f.read_text() for f in folders) if name.search(text))


def main():
    global TENSOR_LIST  # pylint: disable=global-statement
    package = importlib.util.find_spec("tensorflow")
    header = package and pathlib.Path(package.origin).parent / HEADER
    if not header or not header.exists():
        print("skipped: there is no TensorFlow")
        sys.exit(SKIPPED)
    version = re.search(r"^Version: (.*)$", metadata(package), re.MULTILINE).group(1)
    text = header.read_text()
    TENSOR_LIST = set(re.findall(r'"(TensorList\w+)"', text))
    here = {}
    for line in subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines():
        name, since, op, category = line.split()
        here.setdefault((name, since), {})[op] = category
    differences = 0
    for name, class_name, left_out in (("tensorflow", "AutoMixedPrecisionListsFp16", ["use_onednn_"]),
                                       ("tensorflow_bfloat16", "AutoMixedPrecisionListsMkl", [])):
        fitting = sorted((v for n, v in here if n == name and number(v) <= number(version)), key=number)
        if not fitting:
            print(f"skipped: TensorFlow {version} is older than {name}")
            sys.exit(SKIPPED)
        ours, theirs = here[name, fitting[-1]], of_header(text, class_name, left_out)
        for op in sorted(ours.keys() | theirs.keys()):
            if ours.get(op) != theirs.get(op):
                differences += 1
                print(f"{name} {fitting[-1]}: {op} is {ours.get(op)}, in TensorFlow {version} {theirs.get(op)}")
        print(f"{name}: {len(theirs)} ops of TensorFlow {version}")
    sys.exit(1 if differences else 0)


main()
