"""The processes of the model benchmark: compilations, workers, and a process that keeps one core busy."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 600

# Pinned, so that the core which it takes is the same each time; what it disturbs is not pinned by us. It ends with its parent.
SPINNER = """
import os, sys
parent = os.getppid()
os.sched_setaffinity(0, {int(sys.argv[1])})
print("spinning", flush=True)
while os.getppid() == parent:
    pass
"""


class Failed(Exception):
    """Why a process gave no answer; the text is for the user."""


def last_line(text):
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def worker_command(engine, build):
    """How the worker of `engine` is started."""
    if engine == "tessera":
        return [build / "bench" / "models" / "tessera_model_runner"]
    return [sys.executable, HERE / f"{engine}_worker.py"]


def compile_model(build, model, artefact, words):
    """Compiles for the CPU with the further options `words`. Returns the time (whole process) and where prices came from."""
    command = [build / "bin" / "tessera", "compile", model, "-o", artefact, "--devices", "cpu"]
    begin = time.monotonic()
    done = subprocess.run([*command, "--json", *words], capture_output=True, text=True)
    time_us = (time.monotonic() - begin) * 1e6
    if done.returncode != 0:
        raise Failed(f"compile: {last_line(done.stderr)}")
    prices = json.loads(done.stdout.splitlines()[-1])["prices"]
    return {"time_us": time_us, "price_hits": prices["hits"], "price_misses": len(prices["misses"])}


@contextmanager
def _started(command):
    """A process with a pipe for its standard output; ended in any case, and after TIMEOUT_S at the latest."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        timer = threading.Timer(TIMEOUT_S, process.kill)
        timer.start()
        try:
            yield process, errors
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            process.stdout.close()


def _await_ready(process):
    """Reads up to the line `ready`, or to the end of a process that fails before it."""
    for line in process.stdout:
        if line == "ready\n":
            return


def _answer(process, errors):
    text = process.stdout.read()
    code = process.wait()
    if code != 0:
        errors.seek(0)
        raise Failed(f"worker: exit code {code}: {last_line(errors.read())}")
    return json.loads(text.splitlines()[-1])


def _machine_busy_s():
    """Time that all cores together have spent on anything, other guests of the machine included."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = map(int, words)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_busy_s():
    """Time that this process and those that it has waited for have spent."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@contextmanager
def _watched(answer):
    """Adds `others_share` to the answer: the share of all cores that went to other work than ours meanwhile."""
    begin_s = (time.monotonic(), _machine_busy_s(), _own_busy_s())
    yield
    end_s = (time.monotonic(), _machine_busy_s(), _own_busy_s())
    wall_s, machine_s, own_s = (end - begin for begin, end in zip(begin_s, end_s))
    answer["others_share"] = max(0.0, (machine_s - own_s) / (wall_s * os.cpu_count()))


def run_worker(command):
    """The worker's answer (worker.py), and `others_share`."""
    answer = {}
    with _watched(answer), _started(command) as (process, errors):
        _await_ready(process)
        answer.update(_answer(process, errors))
    return answer


@contextmanager
def _spinner(cpu):
    command = [sys.executable, "-c", SPINNER, str(cpu)]
    with _started(command) as (process, _):
        process.stdout.readline()
        yield


def run_worker_beside_spinner(command, quiet_s, busy_s):
    """The answer of run_worker(), and when another process span on one core: the moments of figures.split_phases().

    The worker runs alone for `quiet_s` after its warm-up, then beside the spinning process for `busy_s`, then alone to its end.
    """
    answer, moments = {}, []
    with _watched(answer), _started(command) as (process, errors):
        _await_ready(process)
        time.sleep(quiet_s)
        moments.append(time.monotonic() * 1e6)
        with _spinner(max(os.sched_getaffinity(0))):
            moments.append(time.monotonic() * 1e6)
            time.sleep(busy_s)
            moments.append(time.monotonic() * 1e6)
        moments.append(time.monotonic() * 1e6)
        answer.update(_answer(process, errors))
    return answer, moments
