"""The shared models: which there are, where they stand filled, what they weigh."""

import fnmatch
import subprocess
import sys
from pathlib import Path

import numpy
import onnx


class UnknownModel(Exception):
    """A name that fits no model; the text is for the user."""


def is_quantised(name):
    return name.endswith(("_qdq", "_int8"))


def choose(shared, patterns):
    """Names of the models below `shared` that fit any of the patterns; without patterns all float ones."""
    names = sorted(folder.parent.name for folder in shared.glob("*/inputs.npz"))
    if not patterns:
        return [name for name in names if not is_quantised(name)]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise UnknownModel(f"expected one of {', '.join(names)}, found '{pattern}'")
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def find(shared, filled, name):
    """The file of model `name`, or None where it stands as a skeleton alone."""
    for path in (shared / name / "model.onnx", filled / name / "model.onnx"):
        if path.is_file():
            return path
    return None


def fill(shared, filled, names):
    """Fills the skeletons of `names` into the folder `filled`. Returns reasons by name of those that could not be."""
    reasons = {}
    for name in names:
        command = [sys.executable, shared / "fill_weights.py", "--out", filled, name]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0 or find(shared, filled, name) is None:
            lines = done.stderr.strip().splitlines() or ["fill_weights.py made no model.onnx"]
            reasons[name] = f"not filled: {lines[-1]}"
    return reasons


def _tensor_bytes(tensor):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return int(numpy.prod(tensor.dims, dtype=numpy.int64)) * dtype.itemsize


def _graph_weight_bytes(nodes, initializers):
    total = sum(_tensor_bytes(tensor) for tensor in initializers)
    for node in nodes:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.type == onnx.AttributeProto.TENSOR:
                total += _tensor_bytes(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                total += _graph_weight_bytes(attribute.g.node, attribute.g.initializer)
    return total


def weight_bytes(model):
    """Bytes of the initialisers and the Constant tensors of all graphs of a model, functions included."""
    total = _graph_weight_bytes(model.graph.node, model.graph.initializer)
    return total + sum(_graph_weight_bytes(function.node, []) for function in model.functions)


def shape_words(model, inputs_npz):
    """`NAME=1x3x640x640` for each input with sizes that may vary: the sizes at which it is measured."""
    given = {value.name for value in model.graph.initializer}
    words = []
    with numpy.load(inputs_npz) as inputs:
        for value in model.graph.input:
            if value.name in given or value.name not in inputs.files:
                continue
            type_proto = value.type.tensor_type
            fixed = type_proto.HasField("shape") and all(
                dim.HasField("dim_value") for dim in type_proto.shape.dim
            )
            if not fixed and inputs[value.name].ndim > 0:
                words.append(f"{value.name}={'x'.join(map(str, inputs[value.name].shape))}")
    return words
