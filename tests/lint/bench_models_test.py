#!/usr/bin/env python3
"""Tests of bench/models/figures.py: the figures, what counts as recovered, and when a target holds."""

import math
import os
import sys
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "bench" / "models"))
sys.dont_write_bytecode = True
import figures  # noqa: E402: the path must be set first

PEERS = ["onnxruntime", "openvino"]


def answer(latency_us, load_us=10, first_run_us=20, peak_rss_bytes=300):
    """What a worker says."""
    return {
        "latency_us": latency_us,
        "load_us": load_us,
        "first_run_us": first_run_us,
        "baseline_rss_bytes": 50,
        "peak_rss_bytes": peak_rss_bytes,
        "others_share": 0,
    }


def record(name, busy=None, **latency_us):
    """A model whose engines have these latencies (None: failed), and equal figures in all else."""
    engines = {
        engine: {"failed": "wrong answer"} if us is None else figures.summarise([answer([us])], 100)
        for engine, us in latency_us.items()
    }
    return {"name": name, "engines": engines} | ({"busy": {"tessera": busy}} if busy else {})


def verdict(name, records, peers=PEERS, limits=None):
    return next(v for v in figures.verdicts(records, peers, limits) if v["name"] == name)


class Statistics(unittest.TestCase):
    def test_median_of_an_even_number_is_the_middle(self):
        self.assertEqual((figures.median([4, 1, 2]), figures.median([4, 1, 2, 3])), (2, 2.5))

    def test_percentile_is_a_value_that_was_measured(self):
        values = list(range(1, 201))
        self.assertEqual(figures.percentile(values, 0.99), 198)
        self.assertEqual(figures.percentile([7], 0.99), 7)

    def test_geometric_mean(self):
        self.assertAlmostEqual(figures.geometric_mean([0.5, 2.0, 8.0]), 2.0)
        self.assertIsNone(figures.geometric_mean([]))

    def test_a_result_has_medians_over_rounds_and_the_p99_of_all_runs(self):
        rounds = [answer([10, 11, 90]), answer([20, 21, 22], load_us=12), answer([12, 12, 12])]
        result = figures.summarise(rounds, weights_bytes=100)
        self.assertEqual((result["latency_us"], result["p99_us"], result["runs"]), (12, 90, 9))
        self.assertEqual((result["load_us"], result["start_us"]), (10, 30))
        self.assertEqual((result["net_rss_bytes"], result["added_rss_bytes"]), (200, 150))
        self.assertAlmostEqual(result["spread"], (21 - 11) / 12)


class Ratios(unittest.TestCase):
    def test_the_better_peer_is_the_faster_one(self):
        model = record("m", tessera=12, onnxruntime=10, openvino=8)
        self.assertEqual(figures.ratio(model, "latency_us", PEERS), 1.5)
        self.assertEqual(figures.ratio(model, "latency_us", ["onnxruntime"]), 1.2)

    def test_a_peer_that_failed_is_no_peer(self):
        model = record("m", tessera=12, onnxruntime=10, openvino=None)
        self.assertEqual(figures.ratio(model, "latency_us", PEERS), 1.2)
        self.assertIsNone(figures.ratio(model, "latency_us", ["openvino"]))

    def test_where_tessera_failed_the_ratio_is_infinite_and_no_part_of_the_mean(self):
        models = [record("a", tessera=None, onnxruntime=1), record("b", tessera=3, onnxruntime=1)]
        self.assertEqual(figures.ratio(models[0], "latency_us", PEERS), math.inf)
        self.assertAlmostEqual(figures.mean_ratio(models, "latency_us", "onnxruntime"), 3)


class BusyCore(unittest.TestCase):
    def test_runs_across_a_border_belong_to_no_phase(self):
        starts = [0, 10, 20, 30, 40, 50, 60]
        latencies = [9, 9, 8, 9, 9, 7, 6]
        phases = figures.split_phases(starts, latencies, (19, 25, 49, 55))
        self.assertEqual(phases, ([9, 9], [9, 9], [6]))

    def test_recovery_counts_the_slow_runs_before_a_fast_window(self):
        self.assertEqual(figures.recovery_runs([20] * 7 + [10] * 10, full_speed_us=10), 5)
        self.assertEqual(figures.recovery_runs([10.9] * 5, full_speed_us=10), 0)

    def test_one_slow_run_is_no_relapse_and_one_fast_run_no_recovery(self):
        self.assertEqual(figures.recovery_runs([10, 10, 30, 10, 10, 10], full_speed_us=10), 0)
        self.assertIsNone(figures.recovery_runs([30, 30, 10, 30, 30, 30, 10], full_speed_us=10))

    def test_recovery_that_is_not_seen_is_none(self):
        self.assertIsNone(figures.recovery_runs([20] * 100, full_speed_us=10))
        self.assertIsNone(figures.recovery_runs([10] * 4, full_speed_us=10))

    def test_a_model_too_slow_for_the_phases_has_failed(self):
        result = figures.summarise_busy(10, ([], [20], [10]))
        self.assertEqual(result["failed"], "too slow to be timed: 0 quiet and 1 busy runs")

    def test_verdicts_compare_with_the_same_engine(self):
        busy = figures.summarise_busy(20, ([10] * 5, [24] * 5, [24] * 3 + [10] * 9))
        models = [record("m", busy=busy, tessera=1)]
        self.assertEqual(verdict("busy_one_thread", models)["value"], 1.2)
        self.assertEqual(verdict("recovery_runs", models)["value"], 1)
        self.assertTrue(verdict("recovery_runs", models)["held"])

    def test_a_busy_core_is_not_judged_by_a_plan_from_estimates(self):
        busy = figures.summarise_busy(20, ([10] * 5, [12] * 5, [10] * 9))
        for misses, judged in [(10, 1), (11, 0)]:
            prices = {"1": {"price_hits": 100 - misses, "price_misses": misses}}
            models = [record("m", busy=busy, tessera=1) | {"compile": prices}]
            self.assertEqual(verdict("busy_one_thread", models)["judged"], judged)

    def test_a_model_that_never_recovers_breaks_the_target(self):
        busy = figures.summarise_busy(20, ([10] * 5, [24] * 5, [24] * 90))
        found = verdict("recovery_runs", [record("m", busy=busy, tessera=1)])
        self.assertEqual((found["held"], found["not_held_by"]), (False, [["m", None]]))


class Verdicts(unittest.TestCase):
    def test_a_target_of_each_model_names_those_that_break_it(self):
        models = [
            record("good", tessera=9, onnxruntime=10, openvino=11),
            record("worse", tessera=30, onnxruntime=10, openvino=11),
            record("bad", tessera=20, onnxruntime=10, openvino=11),
        ]
        found = verdict("latency_each", models)
        self.assertEqual((found["held"], found["value"], found["judged"]), (False, 3, 3))
        self.assertEqual(found["not_held_by"], [["bad", 2], ["worse", 3]])

    def test_the_mean_may_hold_where_single_models_do_not(self):
        models = [record("a", tessera=1, onnxruntime=4), record("b", tessera=2, onnxruntime=1)]
        found = verdict("latency_mean", models)
        self.assertEqual((found["held"], found["not_held_by"]), (True, []))
        self.assertAlmostEqual(found["value"], math.sqrt(0.5))

    def test_a_fast_wrong_answer_does_not_count(self):
        models = [record("a", tessera=1, onnxruntime=4), record("b", tessera=None, onnxruntime=4)]
        for name in ("latency_mean", "latency_each", "load_each"):
            found = verdict(name, models)
            self.assertEqual((found["held"], found["not_held_by"]), (False, [["b", None]]), name)

    def test_nothing_to_judge_is_neither_held_nor_broken(self):
        self.assertIsNone(verdict("busy_one_thread", [record("a", tessera=1)])["held"])
        self.assertIsNone(verdict("latency_mean", [record("a", tessera=1)], peers=[])["held"])

    def test_without_onnx_runtime_the_first_peer_stands_in(self):
        found = verdict("latency_mean", [record("a", tessera=1, openvino=2)], peers=["openvino"])
        self.assertEqual(found["target"], "geometric mean of latency / openvino")
        self.assertEqual(found["value"], 0.5)

    def test_limits_can_be_given(self):
        models = [record("a", tessera=14, onnxruntime=10)]
        self.assertFalse(verdict("latency_each", models)["held"])
        self.assertTrue(verdict("latency_each", models, limits={"latency_each": 1.5})["held"])

    def test_a_short_load_is_never_too_long(self):
        models = [record("a", tessera=1, onnxruntime=1)]
        ours, theirs = (models[0]["engines"][name] for name in ("tessera", "onnxruntime"))
        ours["load_us"], theirs["load_us"] = 5000, 6000
        self.assertTrue(verdict("load_each", models)["held"])
        ours["load_us"], theirs["load_us"] = 9000, 80000
        self.assertEqual(verdict("load_each", models)["value"], 9 / 8)
        del ours["load_us"]
        self.assertEqual(verdict("load_each", models)["not_held_by"], [["a", None]])


class Lock(unittest.TestCase):
    def test_every_package_is_pinned_by_version_and_hash(self):
        lines = (ROOT / "bench" / "models" / "engines.lock").read_text().splitlines()
        packages = [line for line in lines if line and not line.startswith("#")]
        for line in packages:
            self.assertRegex(line, r"^[a-z-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}$")
        self.assertTrue(
            {"onnxruntime==1.32.0", "openvino==2026.4.1"} < {p.split()[0] for p in packages}
        )


if __name__ == "__main__":
    unittest.main()
