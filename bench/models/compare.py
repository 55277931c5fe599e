#!/usr/bin/env python3
"""Compares Tessera with ONNX Runtime and OpenVINO on the shared models: latency, p99, load, first run, memory, a busy core.

Engines take turns, one process per engine and round, the order rotated from round to round; figures are medians over the
rounds of medians over the runs. Tessera's artefact is compiled beforehand, for the sizes that are measured; the others load
the ONNX file. An engine whose outputs are not the expected ones has failed on that model.

Tables and verdicts go to standard output, progress to standard error. Exit codes: 0 measured (targets may be missed), 1 Tessera
failed on a model, or there was nothing to measure, 2 usage.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import onnx

import agreement
import catalogue
import figures
import processes
import table

ROOT = Path(__file__).resolve().parents[2]
ENGINES = {"fp32": ["tessera", "onnxruntime", "openvino"], "bf16": ["tessera", "openvino"]}

# How long each process runs. All float models take about 20 minutes on two cores, quickly 4; a busy core adds 10.
FULL = {"rounds": 3, "runs": 20, "warm_up_s": 0.3, "seconds": 1.0, "limit_s": 4.0}
QUICK = {"rounds": 1, "runs": 5, "warm_up_s": 0.1, "seconds": 0.3, "limit_s": 1.5}
MAX_RUNS = 10_000
NO_LIMIT = 1_000_000_000


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse_limit(word):
    name, _, value = word.partition("=")
    if name not in figures.TARGETS:
        raise argparse.ArgumentTypeError(
            f"expected one of {', '.join(figures.TARGETS)}, found '{name}'"
        )
    return name, float(value)


def parse_engines(word):
    engines = word.split(",")
    unknown = [engine for engine in engines if engine not in ENGINES["fp32"]]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"expected some of {ENGINES['fp32']}, found '{unknown[0]}'"
        )
    return engines


def parse_arguments(words):
    parser = argparse.ArgumentParser(
        prog="./dev bench models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("models", nargs="*", metavar="MODEL", help="name or glob; all float models by default")
    add("--quick", action="store_true", help="one short round")
    add(
        "--rounds",
        type=int,
        help=f"processes per engine ({FULL['rounds']}, quick {QUICK['rounds']})",
    )
    add(
        "--runs",
        type=int,
        help=f"timed runs per process, at least ({FULL['runs']}, quick {QUICK['runs']})",
    )
    add(
        "--seconds",
        type=float,
        help=f"of timed runs, at least ({FULL['seconds']}, quick {QUICK['seconds']})",
    )
    add("--threads", type=int, default=2, help="of one inference (2)")
    add("--engines", type=parse_engines, help="tessera,onnxruntime,openvino")
    add(
        "--precision",
        choices=list(ENGINES),
        default="fp32",
        help="bf16: Tessera and OpenVINO alone",
    )
    add(
        "--busy-core",
        action="store_true",
        help="also with one core kept busy, and after it is free again",
    )
    add("--cost-table", type=Path, help="prices for Tessera's compilations")
    add(
        "--measure",
        choices=["off", "missing", "all"],
        default="off",
        help="measure prices into it first",
    )
    add("--measure-seconds", type=float, default=30, help="time for that, per compilation (30)")
    add(
        "--json",
        type=Path,
        default=ROOT / "build" / "bench_models.json",
        help="where all figures go",
    )
    add(
        "--limit",
        type=parse_limit,
        action="append",
        default=[],
        metavar="TARGET=VALUE",
        help="another limit of " + ", ".join(figures.TARGETS),
    )
    add(
        "--shared",
        type=Path,
        default=Path(os.environ.get("TESSERA_SHARED", ROOT.parent / "shared")),
        help="folder with models/",
    )
    add(
        "--filled",
        type=Path,
        default=ROOT / "build" / "models",
        help="where filled models are, or go",
    )
    add("--build", type=Path, default=ROOT / "build" / "release", help="build of Tessera")
    options = parser.parse_args(words)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    if options.engines is None:
        options.engines = ENGINES[options.precision]
    return options


class Bench:
    """One model's files and how its workers are started."""

    def __init__(self, options, name, model, work):
        self.options, self.name, self.model, self.work = options, name, model, work
        self.folder = options.shared / "models" / name
        self.kind = "int8" if catalogue.is_quantised(name) else options.precision
        content = onnx.load(model)
        self.weights_bytes = catalogue.weight_bytes(content)
        self.shapes = catalogue.shape_words(content, self.folder / "inputs.npz")

    def compile(self, threads):
        """Makes the artefact for so many threads; how long it took and where its prices came from."""
        options = self.options
        words = [f"--threads={threads}", f"--precision={options.precision}"]
        words += [word for shape in self.shapes for word in ("--shape", shape)]
        if options.cost_table:
            words += ["--cost-table", options.cost_table, "--measure", options.measure]
            words += ["--measure-seconds", str(options.measure_seconds)]
        return processes.compile_model(options.build, self.model, self.artefact(threads), words)

    def artefact(self, threads):
        return self.work / f"{threads}.tsr"

    def command(self, engine, threads, **effort):
        """A worker's command line; `effort`: its options of time, by their names with _ for -."""
        own = engine == "tessera"
        words = {
            "model": self.artefact(threads) if own else self.model,
            "inputs": self.folder / "inputs.npz",
            "outputs": self.work / "outputs.npz",
            "threads": threads,
            **({} if own else {"precision": self.options.precision}),
            "warm-up-us": int(self.options.warm_up_s * 1e6),
            **{name.replace("_", "-"): int(value) for name, value in effort.items()},
        }
        line = processes.worker_command(engine, self.options.build)
        return line + [str(word) for name, value in words.items() for word in (f"--{name}", value)]

    def quiet_command(self, engine, threads):
        return self.command(
            engine,
            threads,
            budget_us=self.options.seconds * 1e6,
            limit_us=self.options.limit_s * 1e6,
            min_runs=self.options.runs,
            max_runs=MAX_RUNS,
        )

    def check(self):
        """The largest error of the outputs of the last worker. Errors: outputs that are wrong."""
        error, problem = agreement.check_outputs(
            self.folder / "outputs.npz", self.work / "outputs.npz", self.kind
        )
        if problem:
            raise processes.Failed(f"wrong answer: {problem}")
        return error


def compile_artefacts(bench, thread_counts):
    """(what compile() says by number of threads, results of engines that failed)."""
    if "tessera" not in bench.options.engines:
        return {}, {}
    try:
        return {threads: bench.compile(threads) for threads in thread_counts}, {}
    except (processes.Failed, OSError) as failure:
        return {}, {"tessera": {"failed": str(failure)}}


def measure_quiet(bench, failed):
    """Results by engine. An engine that failed once is not asked again."""
    options = bench.options
    results, answers, errors = dict(failed), {}, {}
    for round_index in range(options.rounds):
        first = round_index % len(options.engines)
        for engine in options.engines[first:] + options.engines[:first]:
            if engine in results:
                continue
            try:
                answer = processes.run_worker(bench.quiet_command(engine, options.threads))
                errors[engine] = max(bench.check(), errors.get(engine, 0.0))
                answers.setdefault(engine, []).append(answer)
            except (processes.Failed, OSError) as failure:
                results[engine] = {"failed": str(failure)}
    for engine in options.engines:
        if engine not in results:
            results[engine] = figures.summarise(answers[engine], bench.weights_bytes)
            results[engine]["largest_error"] = errors[engine]
            results[engine]["version"] = answers[engine][0]["version"]
    return {engine: results[engine] for engine in options.engines}


def busy_times_s(latency_us):
    """How long to run quietly, beside the spinning process and after it: for some 20, 15 slowed and 70 runs, within bounds."""
    latency_s = latency_us / 1e6
    return (
        min(max(20 * latency_s, 0.5), 4.0),
        min(max(60 * latency_s, 1.0), 8.0),
        min(max(70 * latency_s, 1.0), 10.0),
    )


def measure_busy(bench, engine, latency_us):
    """The result of one engine with a busy core (figures.summarise_busy)."""
    threads = bench.options.threads
    try:
        one = processes.run_worker(bench.quiet_command(engine, 1))
        quiet_s, busy_s, after_s = busy_times_s(latency_us)
        total_us = (quiet_s + busy_s + after_s) * 1e6
        command = bench.command(
            engine, threads, budget_us=total_us, limit_us=total_us, min_runs=0, max_runs=NO_LIMIT
        )
        answer, moments = processes.run_worker_beside_spinner(command, quiet_s, busy_s)
        bench.check()
    except (processes.Failed, OSError) as failure:
        return {"failed": str(failure)}
    phases = figures.split_phases(answer["start_us"], answer["latency_us"], moments)
    result = figures.summarise_busy(figures.median(one["latency_us"]), phases)
    return result | {"others_share": max(one["others_share"], answer["others_share"])}


def measure_model(options, name, model):
    """The record of one model (figures.py)."""
    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as work:
        bench = Bench(options, name, model, Path(work))
        thread_counts = sorted({1, options.threads}) if options.busy_core else [options.threads]
        compiled, failed = compile_artefacts(bench, thread_counts)
        record = {
            "name": name,
            "weights_bytes": bench.weights_bytes,
            "shapes": bench.shapes,
            "compile": compiled,
            "engines": measure_quiet(bench, failed),
        }
        if options.busy_core:
            record["busy"] = {
                engine: measure_busy(bench, engine, result["latency_us"])
                for engine, result in record["engines"].items()
                if "failed" not in result
            }
    return record


def find_models(options):
    """(file of each model by name, reasons of those that are skipped)."""
    shared = options.shared / "models"
    names = catalogue.choose(shared, options.models)
    skeletons = [name for name in names if catalogue.find(shared, options.filled, name) is None]
    if skeletons:
        say(f"filling {', '.join(skeletons)}")
    skipped = catalogue.fill(shared, options.filled, skeletons)
    found = {name: catalogue.find(shared, options.filled, name) for name in names}
    return {name: path for name, path in found.items() if name not in skipped}, skipped


def machine():
    """What the figures depend on, as far as it can be read."""
    fields = dict(
        (part.strip() for part in line.split(":", 1))
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if ":" in line
    )
    return {
        "processor": fields.get("model name", "unknown"),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
    }


def progress_line(index, count, record):
    cells = []
    for engine, result in record["engines"].items():
        text = "failed" if "failed" in result else f"{result['latency_us'] / 1000:.3f} ms"
        cells.append(f"{table.SHORT[engine]} {text}")
    return f"[{index}/{count}] {record['name']}: {', '.join(cells)}"


def report(options, records, skipped, seconds):
    """Prints tables and verdicts, writes the JSON."""
    peers = [engine for engine in options.engines if engine != figures.OWN]
    verdicts = figures.verdicts(records, peers, dict(options.limit))
    print(table.render(records, options.engines, verdicts, skipped))
    versions = {
        engine: result["version"]
        for record in records
        for engine, result in record["engines"].items()
        if "version" in result
    }
    keys = (
        "precision",
        "threads",
        "rounds",
        "runs",
        "seconds",
        "limit_s",
        "warm_up_s",
        "busy_core",
    )
    content = {
        "schema": "tessera.bench_models/1.0",
        "machine": machine(),
        "versions": versions,
        "settings": {key: getattr(options, key) for key in keys},
        "models": records,
        "skipped": skipped,
        "mean_ratios": {
            key: {peer: figures.mean_ratio(records, key, peer) for peer in peers}
            for key in (
                "latency_us",
                "p99_us",
                "load_us",
                "first_run_us",
                "start_us",
                "net_rss_bytes",
                "added_rss_bytes",
            )
        },
        "verdicts": verdicts,
        "time_s": seconds,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    say(f"wrote {options.json} after {seconds:.0f} s")


def main():
    options = parse_arguments(sys.argv[1:])
    begin = time.monotonic()
    try:
        models, skipped = find_models(options)
    except catalogue.UnknownModel as error:
        say(f"bench models: {error}")
        return 2
    if not models:
        say(f"bench models: no model below {options.shared / 'models'}")
        return 1
    records = []
    for name, path in models.items():
        records.append(measure_model(options, name, path))
        say(progress_line(len(records), len(models), records[-1]))
    report(options, records, skipped, time.monotonic() - begin)
    return 1 if any("failed" in record["engines"].get("tessera", {}) for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())
