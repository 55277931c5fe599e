"""ONNX Runtime and Tessera on cases."""

import json
import shutil
import subprocess

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

VERSION = "1.32.0"


class Failed(Exception):
    """Why an engine gave no answers; the text is for the user."""


def expected_outputs(case):
    """What ONNX Runtime gives, or what the case says itself where that has no kernel for the CPU."""
    if case.expected is not None:
        return [np.asarray(value) for value in case.expected()]
    if case.instead is not None:
        case.instead.name = f"{case.name} as {case.instead.op}"
        return expected_outputs(case.instead)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(case.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {name: one.value for name, one in case.fed.items()})
    except Exception as problem:  # noqa: BLE001: its classes are not exported
        raise Failed(f"{case.name}: ONNX Runtime: {' '.join(str(problem).split())}") from problem


def write_task(case, folder):
    """Writes the model and its inputs; gives the task of the runner."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model().SerializeToString())
    inputs = []
    for name, one in case.fed.items():
        path = folder / f"{name}.pb"
        path.write_bytes(numpy_helper.from_array(one.value, name).SerializeToString())
        inputs.append(str(path))
    return {"model": str(folder / "model.onnx"), "inputs": inputs}


def read_output(path):
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def run_tessera(runner, device, cases, tasks, folder):
    """An error's text or the outputs, for each case."""
    shutil.rmtree(folder, ignore_errors=True)
    lines = []
    for case, task in zip(cases, tasks):
        target = folder / case.name
        target.mkdir(parents=True)
        lines.append(json.dumps({**task, "outputs": str(target)}))
    done = subprocess.run([runner, device, "2"], input="\n".join(lines), capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(answers) != len(cases):
        raise Failed(f"{runner} ended with code {done.returncode} after {len(answers)} of {len(cases)} cases: {done.stderr.strip()}")
    results = []
    for case, answer in zip(cases, answers):
        count = sum(1 for name in case.outputs if name)
        results.append(answer.get("error") or [read_output(folder / case.name / f"output_{i}.pb") for i in range(count)])
    return results
