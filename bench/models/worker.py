"""What every engine's worker does: one process loads one model, runs it, and prints what it measured.

Options, each `--name value`:
  --model FILE        what the engine loads           --inputs F.npz    read before loading
  --outputs F.npz     written after the last run      --threads N       of one inference
  --warm-up-us U      untimed runs, one at least
  --budget-us U --min-runs N     timed runs: until both are reached,
  --limit-us U --max-runs N      but no further than either of these
  --precision P       fp32 or bf16 (an artefact of Tessera has its own)
Standard output: a line `ready` before the first timed run; then one line of JSON with
  version             of the engine
  baseline_rss_bytes  peak resident memory once the engine is imported, before inputs and model are read
  peak_rss_bytes      the same after the last timed run
  load_us             from the file to a session that can run
  first_run_us        inputs bound, run, all outputs fetched
  start_us            of every timed run, on CLOCK_MONOTONIC
  latency_us          of every timed run: run, all outputs fetched
Exit codes: 0 done, 1 the engine failed (its message is on standard error), 2 usage.
"""

import argparse
import gc
import json
import sys
import time
from array import array
from pathlib import Path

import numpy


def peak_rss_bytes():
    """The largest memory of this program image. (ru_maxrss would count the parent's, which outlives exec.)"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status: expected a line VmHWM")


def parse_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "inputs", "outputs"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("threads", "warm-up-us", "budget-us", "limit-us", "min-runs", "max-runs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    return parser.parse_args(words)


def is_spent(effort, runs, elapsed_us):
    """Whether the timed runs end here."""
    if runs >= effort.max_runs or elapsed_us >= effort.limit_us:
        return True
    return runs >= effort.min_runs and elapsed_us >= effort.budget_us


def time_runs(run, effort):
    """Warms up, says `ready`, then runs. Returns starts and latencies in ns."""
    clock = time.monotonic_ns
    warm_up_end = clock() + effort.warm_up_us * 1000
    run()
    while clock() < warm_up_end:
        run()
    print("ready", flush=True)
    starts, latencies = array("q"), array("q")
    begin = clock()
    while True:
        start = clock()
        run()
        end = clock()
        starts.append(start)
        latencies.append(end - start)
        if is_spent(effort, len(starts), (end - begin) / 1000):
            return starts, latencies


def measure(engine, options, baseline):
    """The answer, as the text above describes it."""
    with numpy.load(options.inputs) as file:
        inputs = dict(file)
    load_start = time.monotonic_ns()
    engine.load(str(options.model), options.threads, options.precision)
    first_start = time.monotonic_ns()
    engine.bind(inputs)
    engine.run()
    first_end = time.monotonic_ns()
    starts, latencies = time_runs(engine.run, options)
    peak = peak_rss_bytes()
    numpy.savez(options.outputs, **engine.outputs())
    return {
        "version": engine.version,
        "baseline_rss_bytes": baseline,
        "peak_rss_bytes": peak,
        "load_us": (first_start - load_start) / 1000,
        "first_run_us": (first_end - first_start) / 1000,
        "start_us": [ns / 1000 for ns in starts],
        "latency_us": [ns / 1000 for ns in latencies],
    }


def main(engine):
    """Runs `engine`: version, load(path, threads, precision), bind(inputs by name), run(), outputs() by name."""
    baseline = peak_rss_bytes()
    options = parse_arguments(sys.argv[1:])
    gc.disable()
    try:
        answer = measure(engine, options, baseline)
    except Exception as error:  # of any type: engines have their own
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer), flush=True)
    return 0
