# SPDX-License-Identifier: MIT
"""Compares plans of graph rewrites with what an installed TensorFlow makes of random graphs.

    python3 tensorflow_graph_rewrite.py PROGRAM [GRAPHS] [SEED]

PROGRAM prints plans, see print_graph_plan.cpp. The passes are auto_mixed_precision_onednn_bfloat16 on the CPU, and
auto_mixed_precision (float16) on a GPU that is described and not there, for which this TensorFlow may have no kernels.
Which kernels and which types there are is asked of its registries. Exits with 77 where there is no TensorFlow 2.21 or later.
"""
import os
import random
import subprocess
import sys

SKIPPED = 77
os.environ["TF_CPP_MIN_LOG_LEVEL"] = os.environ.get("MP_TF_LOG", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_IGNORE_PERFORMANCE"] = "1"

try:
    import tensorflow as tf
    from tensorflow.core.framework import types_pb2
    from tensorflow.core.protobuf import config_pb2, device_properties_pb2, meta_graph_pb2, rewriter_config_pb2
    from tensorflow.python.framework import kernels, op_def_registry
    from tensorflow.python.grappler import cluster as grappler_cluster
    from tensorflow.python.grappler import tf_optimizer
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)
if [int(part) for part in tf.__version__.split(".")[:2]] < [2, 21]:
    print(f"skipped: TensorFlow {tf.__version__} is older than 2.21")
    sys.exit(SKIPPED)

NAMES = {"float32": types_pb2.DT_FLOAT, "float16": types_pb2.DT_HALF, "bfloat16": types_pb2.DT_BFLOAT16,
         "int32": types_pb2.DT_INT32, "int64": types_pb2.DT_INT64, "bool": types_pb2.DT_BOOL}
WORDS = {number: name for name, number in NAMES.items()}
PASSES = {"bf16": "auto_mixed_precision_onednn_bfloat16", "f16": "auto_mixed_precision"}
LOW = {"bf16": types_pb2.DT_BFLOAT16, "f16": types_pb2.DT_HALF}
FLOAT_OPS = {1: ["Sigmoid", "Tanh", "Exp", "Log", "Relu", "Identity", "Softmax", "Sqrt", "Abs", "Neg", "Expm1", "Rsqrt",
                 "Square", "Erf", "Selu", "Floor", "StopGradient", "Sin", "LogSoftmax"],
             2: ["MatMul", "MatMul", "MatMul", "MatMul", "AddV2", "Mul", "Sub", "Maximum", "Pow", "RealDiv", "ReluGrad",
                 "SigmoidGrad"]}


class Graph:
    """A GraphDef, and the same for PROGRAM. Values are (node, output, type)."""

    def __init__(self, generator, size):
        self.random = generator
        self.meta = meta_graph_pb2.MetaGraphDef()
        self.meta.graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
        self.lines = {}
        self.values = []
        for i in range(3):
            self.add("Placeholder", [], {"dtype": "float32"}, ["float32"])
        self.ints = self.add("Const", [], {"dtype": "int32"}, ["int32"], value=[0])
        for _ in range(size):
            self.random_node()
        floats = [v for v in self.values if v[2] == "float32"]
        self.fetch = self.add("Identity", [self.random.choice(floats)], {"T": "float32"}, ["float32"])[0][0]
        self.meta.collection_def["train_op"].node_list.value.append(self.fetch)

    def add(self, op, inputs, attributes, outputs, lists=None, value=None, integers=None):
        node = self.meta.graph_def.node.add(name=f"n{len(self.meta.graph_def.node)}", op=op)
        for source, output, _ in inputs:
            node.input.append(source if output == 0 else f"{source}:{output}")
        for name, kind in attributes.items():
            node.attr[name].type = NAMES[kind]
        for name, kinds in (lists or {}).items():
            node.attr[name].list.type.extend(NAMES[kind] for kind in kinds)
        for name, number in (integers or {}).items():
            node.attr[name].i = number
        if op == "Placeholder":
            for _ in range(2):
                node.attr["shape"].shape.dim.add(size=4)
        if value is not None:
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype=attributes["dtype"]))
        made = [(node.name, i, kind) for i, kind in enumerate(outputs)]
        self.values += made
        return made

    def pick(self, kind="float32"):
        return self.random.choice([v for v in self.values if v[2] == kind])

    def random_node(self):
        choice = self.random.random()
        pick = self.pick
        if choice < 0.30:
            self.add(self.random.choice(FLOAT_OPS[1]), [pick()], {"T": "float32"}, ["float32"])
        elif choice < 0.62:
            self.add(self.random.choice(FLOAT_OPS[2]), [pick(), pick()], {"T": "float32"}, ["float32"])
        elif choice < 0.68:
            self.add(self.random.choice(["Mean", "Sum", "Max", "Prod"]), [pick(), self.ints[0]],
                     {"T": "float32", "Tidx": "int32"}, ["float32"])
        elif choice < 0.73:
            self.add("Reshape", [pick(), pick("int32")], {"T": "float32", "Tshape": "int32"}, ["float32"])
        elif choice < 0.77:
            self.add("Shape", [pick()], {"T": "float32", "out_type": "int32"}, ["int32"])
        elif choice < 0.83:
            count = self.random.randrange(1, 4)
            self.add("IdentityN", [pick() for _ in range(count)], {}, ["float32"] * count, {"T": ["float32"] * count})
        elif choice < 0.88:
            source = self.random.choice([v for v in self.values if v[2] in ("float32", "int32", "float16")])
            target = self.random.choice(["float32", "float32", "float16", "int32"])
            self.add("Cast", [source], {"SrcT": source[2], "DstT": target}, [target])
        elif choice < 0.95:
            self.batch_norm()
        else:
            self.add("ConcatV2", [pick(), pick(), self.ints[0]], {"T": "float32", "Tidx": "int32"}, ["float32"],
                     integers={"N": 2})

    def batch_norm(self):
        op = self.random.choice(["FusedBatchNorm", "FusedBatchNormGrad"]) + self.random.choice(["", "V2", "V3", "V3"])
        types = {"T": "float32", "U": "float32"} if op.endswith(("V2", "V3")) else {"T": "float32"}
        inputs, outputs = {True: (6, 5), False: (5, 6)}["Grad" in op] if op.endswith("V3") else (5, 5)
        self.add(op, [self.pick() for _ in range(inputs)], types, ["float32"] * outputs)


def op_after(node):
    return node.op + "V2" if node.op in ("FusedBatchNorm", "FusedBatchNormGrad") else node.op


def main_attribute(op):
    return {"Cast": "DstT", "Placeholder": "dtype", "Const": "dtype"}.get(op, "T")


def types_of(node):
    return {name: value.type for name, value in node.attr.items() if value.WhichOneof("value") == "type"}


def is_defined(op, attribute, low):
    for it in op_def_registry.get(op).attr:
        if it.name == attribute:
            return not it.HasField("allowed_values") or low in it.allowed_values.list.type
    return False


def has_kernel(node, op, low, device):
    """Whether a kernel of the device takes the node with the low precision in place of its type."""
    types = {"U": types_pb2.DT_FLOAT} | types_of(node) | {main_attribute(op): low}
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        if kernel.device_type in (device, "DEFAULT") and all(
                not c.allowed_values.list.type or types.get(c.name, low) in c.allowed_values.list.type
                for c in kernel.constraint):
            return True
    return False


def described(graph, mode):
    """The graph for PROGRAM."""
    device = "CPU" if mode == "bf16" else "GPU"
    lines = []
    nodes = {node.name: node for node in graph.meta.graph_def.node}
    for node in graph.meta.graph_def.node:
        op = op_after(node)
        kind = WORDS[node.attr[main_attribute(op)].type] if op != "IdentityN" else "float32"
        flags = "e" + ("p" if node.name == graph.fetch else "")
        flags += "k" if has_kernel(node, op, LOW[mode], device) and is_defined(op, main_attribute(op), LOW[mode]) else ""
        flags += "d" if is_defined(op, main_attribute(op), LOW[mode]) else ""
        words = ["node", node.name, node.op, kind, flags]
        for text in node.input:
            source = text.split(":")[0]
            words.append(text)
            assert source in nodes
        if node.op == "Shape":
            words.append("=0,int32")
        lines.append(" ".join(words))
    return lines + ["plan " + mode]


def rewritten(graph, mode):
    """Types in low precision and casts, as TensorFlow has them."""
    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    options.min_graph_nodes = -1
    options.optimizers.append(PASSES[mode])
    if mode == "bf16":
        cluster = grappler_cluster.Cluster(disable_detailed_stats=True)
    else:
        gpu = device_properties_pb2.DeviceProperties(type="GPU", vendor="NVIDIA", num_cores=80, memory_size=2**34)
        for key, value in (("architecture", "8.0"), ("cuda", "12000"), ("cudnn", "9000")):
            gpu.environment[key] = value
        cluster = grappler_cluster.Cluster(devices=[
            device_properties_pb2.NamedDevice(name="/job:localhost/replica:0/task:0/device:GPU:0", properties=gpu)])
        for node in graph.meta.graph_def.node:
            node.device = "/job:localhost/replica:0/task:0/device:GPU:0"
    result = tf_optimizer.OptimizeGraph(config, graph.meta, cluster=cluster)
    before = {node.name: node for node in graph.meta.graph_def.node}
    found = set()
    for node in result.node:
        if node.name not in before:
            found.add(node.name)
            continue
        old = before[node.name]
        for name, value in types_of(node).items():
            if value == LOW[mode] and name in old.attr and old.attr[name].type != value:
                found.add(node.name if name == main_attribute(node.op) else f"{node.name}/{name}")
            elif value == LOW[mode] and name not in old.attr:
                found.add(f"{node.name}/{name}")
        for i, value in enumerate(node.attr["T"].list.type if node.op == "IdentityN" else []):
            if value == LOW[mode]:
                found.add(node.name if i == 0 else f"{node.name}/T[{i}]")
    return found


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    generator = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    different = changed = shown = 0
    for mode in PASSES:
        graphs = [Graph(generator, generator.randrange(3, 16)) for _ in range(count)]
        text = "\n".join(line for graph in graphs for line in described(graph, mode)) + "\n"
        plans = subprocess.run([sys.argv[1]], input=text, check=True, capture_output=True, text=True).stdout.split("\n")
        for graph, line in zip(graphs, plans):
            here, there = set(line.split()), rewritten(graph, mode)
            changed += bool(there)
            if here != there:
                different += 1
                if shown < 3:
                    shown += 1
                    print("\n".join(described(graph, mode)))
                    print("only here:", *sorted(here - there))
                    print("only in TensorFlow:", *sorted(there - here))
    print(f"TensorFlow {tf.__version__}: {2 * count} graphs, {changed} rewritten, {different} differ")
    sys.exit(1 if different or not changed else 0)


main()
