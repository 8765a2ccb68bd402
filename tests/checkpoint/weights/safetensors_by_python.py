"""The safetensors package of Python, asked by tests/checkpoint/safetensors_test.cc.

    safetensors_by_python.py hashes FILE   prints {"metadata": ..., "tensors": {name: {dtype, shape, sha256}}}
    safetensors_by_python.py write FILE    writes a file of several dtypes, and prints the same of it
"""

import hashlib
import json
import sys

import numpy
import safetensors
from safetensors.numpy import save_file


def hashes(path):
    tensors = {}
    with safetensors.safe_open(path, framework="numpy") as file:
        for name in file.keys():
            array = numpy.ascontiguousarray(file.get_tensor(name))
            tensors[name] = {
                "dtype": str(array.dtype),
                "shape": list(file.get_slice(name).get_shape()),
                "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
            }
        return {"metadata": file.metadata(), "tensors": tensors}


command, path = sys.argv[1:]
if command == "write":
    kinds = ("float64", "float32", "float16", "int8", "int32", "int64", "uint8", "bool")
    arrays = {f"{kind}.{n}": (numpy.arange(n * 3) % 2).reshape(n, 3).astype(kind) for kind in kinds for n in (1, 7)}
    arrays["scalar"] = numpy.array(2.5, "float32")
    arrays["empty"] = numpy.zeros((0, 4), "float32")
    save_file(arrays, path, {"who": "Python"})
print(json.dumps(hashes(path)))
