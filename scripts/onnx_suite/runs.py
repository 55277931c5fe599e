"""Runs the cases with the runner of tests/onnx_suite: one process for a device, which isolates each case itself."""

import json
import shutil
import subprocess

from cases import numbered


class Failed(Exception):
    """Why the runner gave no answers; the text is for the user."""


def run_all(runner, device, threads, sets, folder):
    """Runs the data sets ((case, index) pairs) on a device. Outputs go below `folder`; gives an answer and a folder for each."""
    shutil.rmtree(folder, ignore_errors=True)
    tasks, folders = [], []
    for case, index in sets:
        target = folder / case.category / case.name / str(index)
        target.mkdir(parents=True)
        folders.append(target)
        inputs = [str(path) for path in numbered(case.data_set(index), "input")]
        tasks.append(json.dumps({"model": str(case.model), "inputs": inputs, "outputs": str(target)}))
    done = subprocess.run([runner, device, str(threads)], input="\n".join(tasks), capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(answers) != len(tasks):
        raise Failed(f"{runner} ended with code {done.returncode} after {len(answers)} of {len(tasks)} cases: {done.stderr.strip()}")
    return list(zip(answers, folders))
