# SPDX-License-Identifier: MIT
# foreign_files.py KIND FOLDER
#
# Checks the files ours_* in the folder, and writes others there that the tests of the same kind read:
# npy, safetensors or gguf. Ends with 3 where a package is missing:
#   python3 -m venv V && V/bin/pip install numpy ml_dtypes safetensors gguf, and MP_PYTHON=V/bin/python for the tests
import os
import sys

kind, folder = sys.argv[1:]
try:
    import ml_dtypes
    import numpy as np
    if kind == "safetensors":
        import safetensors
        import safetensors.numpy
    if kind == "gguf":
        import gguf
except ImportError:
    sys.exit(3)


def path(name):
    return os.path.join(folder, name)


if kind == "npy":
    ours = np.load(path("ours_bf16.npy")).view(ml_dtypes.bfloat16)
    assert ours.shape == (2, 1) and (ours == np.array([[0.1], [-3]], ml_dtypes.bfloat16)).all()
    assert np.load(path("ours_half.npy"))[0] == np.float16(0.1)
    assert np.load(path("ours_e5m2.npy")).view(ml_dtypes.float8_e5m2)[0] == ml_dtypes.float8_e5m2(0.1)
    np.save(path("bf16.npy"), (np.arange(6) / 4).astype(ml_dtypes.bfloat16).reshape(2, 3))
    np.save(path("e5m2.npy"), np.array([1, -1.5], ml_dtypes.float8_e5m2))
    np.save(path("fortran.npy"), np.asfortranarray([[0.0, 1, 2], [10, 11, 12]]))
    np.save(path("big.npy"), np.array([1, 2, 3], ">f4"))
    with open(path("several.npy"), "wb") as file:
        for i in range(3):
            np.save(file, np.full(i + 1, i, np.int16))
    # More dimensions than an array of NumPy has, so that only the header is read.
    with open(path("ours_long.npy"), "rb") as file:
        assert np.lib.format.read_magic(file) == (2, 0)
        shape, order, dtype = np.lib.format.read_array_header_2_0(file, max_header_size=100000)
        assert shape == (1,) * 30000 and not order and dtype == np.float32
        assert file.tell() % 64 == 0 and file.read() == np.float32(1.5).tobytes()

if kind == "safetensors":
    data = open(path("ours.safetensors"), "rb").read()
    tensors = dict(safetensors.deserialize(data))
    assert tensors["w"]["dtype"] == "F4" and tensors["w"]["shape"] == [2, 32]
    assert tensors["w_scale"]["dtype"] == "F8_E8M0" and tensors["w_scale"]["shape"] == [2, 1]
    codes = np.frombuffer(tensors["w"]["data"], np.uint8)
    codes = np.stack([codes & 15, codes >> 4], -1).reshape(2, 32).view(ml_dtypes.float4_e2m1fn)
    scales = np.frombuffer(tensors["w_scale"]["data"], np.uint8).view(ml_dtypes.float8_e8m0fnu).reshape(2, 1)
    values = codes.astype(np.float32) * scales.astype(np.float32)
    assert (values == [[6 * 2.0**i] + [2.0**i] * 31 for i in (0, 3)]).all()
    n = np.frombuffer(tensors["n"]["data"], np.float32)
    assert (n == [1, 2, 3]).all()
    safetensors.numpy.save_file({
        "b": (np.arange(4) / 4).astype(ml_dtypes.bfloat16).reshape(2, 2),
        "d": np.array([0.1]), "i": np.array([1, -2], np.int32), "t": np.array([True, False])},
        path("theirs.safetensors"), {"made by": "numpy"})

if kind == "gguf":
    writer = gguf.GGUFWriter(path("theirs.gguf"), "test")
    writer.add_uint32("count", 7)
    writer.add_array("words", ["a", "bc"])
    writer.add_float32("epsilon", 0.5)
    writer.add_tensor("f", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("h", np.array([0.1, -2], np.float16))
    # Two rows of a block each: what ggml's own quantiser makes of them, and their values by its dequantiser.
    values = (np.arange(64, dtype=np.float32).reshape(2, 32) - 20) / 8
    blocks = gguf.quants.quantize(values, gguf.GGMLQuantizationType.MXFP4)
    writer.add_tensor("x", blocks, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
    writer.add_tensor("x.values", gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.MXFP4))
    writer.add_tensor("q", gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0),
                      raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    # Random bytes as blocks, but for the scale of MXFP4 that is NaN.
    random = np.random.default_rng(1)
    for name in ["Q4_0", "Q8_0", "Q4_K", "Q6_K", "MXFP4", "NVFP4"]:
        kind_of_block = gguf.GGMLQuantizationType[name]
        blocks = random.integers(0, 256, (40, gguf.constants.GGML_QUANT_SIZES[kind_of_block][1] * 4), np.uint8)
        if name == "MXFP4":
            blocks[:, ::17] &= 254
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(blocks, kind_of_block).astype(np.float32)
        writer.add_tensor("blocks." + name, blocks, raw_dtype=kind_of_block)
        writer.add_tensor("blocks." + name + ".values", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
