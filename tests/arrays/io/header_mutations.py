# SPDX-License-Identifier: MIT
# header_mutations.py KIND FOLDER
#
# Writes the file "headers" into the folder: generated and mutated safetensors files, each with the verdict of the safetensors
# package. KIND is the number of files. Ends with 3 where the package is missing, see foreign_files.py. A record is
#   size of the file (uint32), the file, size of the verdict (uint32), the verdict
# where a verdict is empty for a refused file, and otherwise a line "name dtype [2, 3]" for each tensor by name.
import random
import re
import struct
import sys

count, folder = int(sys.argv[1]), sys.argv[2]
try:
    import safetensors
except ImportError:
    sys.exit(3)


def verdict(data):
    try:
        tensors = sorted((name.encode(), it["dtype"], it["shape"]) for name, it in safetensors.deserialize(data))
    except BaseException:  # a panic of Rust is no Exception
        return b""
    return b"".join(name + f" {dtype} {shape}\n".encode() for name, dtype, shape in tensors) + b"."


EMPTY = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
SEEDS = [
    '{}', '{"__metadata__":null}', '{"__metadata__":{"a":"b","c":"d"}}',
    '{"a":' + EMPTY + '}',
    '{"a":["U8",[0],[0,0]]}',
    '{"a":{"dtype":{"F32":null},"shape":[0,7],"data_offsets":[0,0]},"\\u0041\\ud83d\\ude00\\n":' + EMPTY + '}',
    '{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":[1.5e3,-0,{"y":null,"z":[true,false]},"\\/"]}}',
    '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F16","shape":[1,2],"data_offsets":[8,12]}}',
    '{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}}',
    '{"__metadata__":{"a":"b","a":"é😀"},"é":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}',
    '{"a":{"data_offsets":[0,0],"shape":[0,18446744073709551615],"dtype":"F64"},"b":' + EMPTY + '}',
    '{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1.7976931348623157e308,"y":18446744073709551615e288}}',
    '{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":' + '[' * 124 + ']' * 124 + '}}',
    '{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1797693134862315808000.25e287,"x":0.000001e314}}',
]
TOKENS = ['{', '}', '[', ']', ',', ':', '"', '\\', ' ', '\n', '\t', '\r', '0', '1', '-', '+', '.', 'e', 'E', '-0', '01',
          'null', 'true', 'false', 'NaN', '""', '[]', '{}', '"a"', '"b"', '"__metadata__"', '"dtype"', '"shape"',
          '"data_offsets"', '"U8"', '"F32"', '"BF16"', '"F8_E8M0"', '"x":1,', '\\u0041', '\\ud800', '\\udc00', '\\u00e9',
          '18446744073709551616', '9223372036854775808', '4294967296,4294967296', '1e400', '1e-400', '1e308', 'é', '😀',
          b'\xff', b'\xc3', b'\xed\xa0\x80', b'\xf4\x90\x80\x80', b'\xf0\x8f\x80\x80', b'\xc1\x80', '\x00', '\x1f',
          '\x7f', EMPTY, '"b":' + EMPTY + ',', ',"a":' + EMPTY, '"__metadata__":null,', '[' * 2, ']' * 2]
TOKENS = [it if isinstance(it, bytes) else it.encode() for it in TOKENS]
SEEDS = [it.encode() for it in SEEDS]
WIDTHS = {"U8": 8, "BOOL": 8, "F32": 32, "F64": 64, "F16": 16, "F4": 4, "F6_E3M2": 6, "C64": 64, "F8_E4M3FNUZ": 8}
choose = random.Random(1)


def spaces():
    return choose.choice(["", "", "", "", "", " ", "\n", "\t\r"])


def string():
    pieces = ["a", "b", "c", "dtype", "é", "\\u00e9", "\\u0000", "\\ud83d\\ude00", "\\uDBFF\\uDFFF", "\\n", "\\/", '\\"', "\x7f", " "]
    return '"' + "".join(choose.choice(pieces) for _ in range(choose.choice([0, 1, 1, 1, 2, 3]))) + '"'


def number():
    digits = "".join(choose.choice("0123456789") for _ in range(choose.choice([1, 2, 17, 18, 19, 20, 30, 300])))
    text = choose.choice(["", "-"]) + (digits.lstrip("0") or "0")
    if choose.randrange(2):
        text += "." + "".join(choose.choice("0159") for _ in range(choose.choice([1, 2, 20])))
    if choose.randrange(2):
        text += choose.choice("eE") + choose.choice(["", "+", "-"]) + str(
            choose.choice([0, 1, 280, 288, 289, 290, 291, 307, 308, 309, 400, 2**31 - 1, 2**31, 10**20]))
    return text


def value(depth=0):
    kind = choose.randrange(6 if depth < 3 else 4)
    if kind < 2:
        return number()
    if kind < 4:
        return choose.choice(["null", "true", "false", string()])
    inner = [value(depth + 1) for _ in range(choose.randrange(3))]
    if kind == 4:
        return "[" + spaces() + ("," + spaces()).join(inner) + "]"
    return "{" + spaces() + ",".join(string() + spaces() + ":" + it for it in inner) + "}"


def tensor(begin):
    dtype = choose.choice(list(WIDTHS))
    shape = [choose.choice([0, 1, 2, 4, 4, 8, 3]) for _ in range(choose.randrange(4))]
    product = 1
    for it in shape:
        product *= it
    end = begin + product * WIDTHS[dtype] // 8
    if product == 0 and choose.randrange(2):
        shape.append(choose.choice([2**62, 2**63 - 1, 2**63, 2**64 - 1]))
    name = '"' + dtype + '"' if choose.randrange(8) else '{"' + dtype + '":null}'
    values = [name, str(shape), f"[{begin},{spaces()}{end}]"]
    if choose.randrange(8) == 0:
        return "[" + ",".join(values) + "]", end
    members = ['"' + key + '":' + spaces() + it for key, it in zip(["dtype", "shape", "data_offsets"], values)]
    for _ in range(choose.choice([0, 0, 1, 2])):
        members.append(string() + ":" + value())
    choose.shuffle(members)
    return "{" + spaces() + ("," + spaces()).join(members) + "}", end


def header():
    if choose.randrange(8) == 0:
        return choose.choice(SEEDS)
    members, end = [], 0
    for _ in range(choose.choice([0, 1, 1, 2, 3])):
        text, after = tensor(end)
        end = after if choose.randrange(8) else end
        members.append(string() + spaces() + ":" + text)
    for _ in range(choose.choice([0, 0, 0, 1, 1, 2])):
        pairs = ",".join(string() + ":" + string() for _ in range(choose.randrange(3)))
        members.append('"__metadata__":' + choose.choice(["null", "{" + pairs + "}", "{" + pairs + "}"]))
    choose.shuffle(members)
    return (spaces() + "{" + spaces() + ("," + spaces()).join(members) + "}" + spaces()).encode()


def mutated(text):
    kind = choose.randrange(7)
    at = choose.randrange(len(text) + 1)
    if kind == 0:  # insert a token
        return text[:at] + choose.choice(TOKENS) + text[at:]
    if kind == 1:  # replace some bytes by a token
        return text[:at] + choose.choice(TOKENS) + text[at + choose.randrange(4):]
    if kind == 2:  # remove some bytes
        return text[:at] + text[at + choose.randrange(1, 4):]
    if kind == 3:  # replace a byte
        return text[:at] + bytes([choose.randrange(256)]) + text[at + 1:]
    if kind == 4:  # insert a token where one is likely to fit
        places = [i + 1 for i, byte in enumerate(text) if byte in b'{[,:']
        at = choose.choice(places) if places else 0
        return text[:at] + choose.choice(TOKENS) + text[at:]
    if kind == 5:  # change a number
        digits = [i for i, byte in enumerate(text) if byte in b'0123456789']
        at = choose.choice(digits) if digits else 0
        return text[:at] + str(choose.choice([0, 1, 2, 8, 12, 3, 127])).encode() + text[at + 1:]
    other = header()  # join two texts
    return text[:at] + other[choose.randrange(len(other) + 1):]


def data_size(text):
    """What the offsets of the text ask for, mostly."""
    ends = [int(it) for it in re.findall(rb"\[\d+,\s*(\d+)\]", text) if len(it) < 4]
    return max(ends, default=0) if choose.randrange(8) else choose.choice([0, 1, 3, 8, 12])


seen = set()
with open(folder + "/headers", "wb") as out:
    while len(seen) < count:
        text = header()
        for _ in range(choose.choice([0, 0, 1, 1, 1, 2, 3])):
            text = mutated(text)
        size = len(text) if choose.randrange(50) else choose.choice([0, 1, max(len(text) - 1, 0), len(text) + 1, 2**63, 2**64 - 1])
        data = struct.pack("<Q", size) + text + bytes(data_size(text))
        if data in seen:
            continue
        seen.add(data)
        result = verdict(data)
        out.write(struct.pack("<I", len(data)) + data + struct.pack("<I", len(result)) + result)
