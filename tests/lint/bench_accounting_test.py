#!/usr/bin/env python3
"""Tests of bench/models/accounting_figures.py and its table: sums, errors by kernel, and when a target holds."""

import os
import sys
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "bench" / "models"))
sys.dont_write_bytecode = True
import accounting_figures as figures  # noqa: E402: the path must be set first
import accounting_table as table  # noqa: E402


def instruction(kernel, span_us, price_us, calls=1, plan_us=5, **others):
    words = {"device": "cpu", "method": 0, "region": 0, "busy": False}
    return words | {
        "kernel": kernel,
        "span_us": span_us,
        "price_us": price_us,
        "plan_us": plan_us,
        "calls": calls,
        **others,
    }


def answer(instructions, total_us=(100,), compute_us=(90,), layout_us=(8,)):
    """What the worker says."""
    return {
        "version": "1",
        "caches": "resident",
        "total_us": list(total_us),
        "parts_us": {"compute": list(compute_us), "layout": list(layout_us)},
        "instructions": instructions,
        "others_share": 0,
    }


def record(name, predicted_us, measured_us, unaccounted_us=0):
    made = figures.summarise(answer([instruction("k", measured_us, predicted_us)], [measured_us]))
    return {"name": name, **made, "unaccounted_us": unaccounted_us}


def verdict(name, records, limits=None):
    return next(v for v in figures.verdicts(records, limits) if v["name"] == name)


class Summary(unittest.TestCase):
    def test_predicted_is_the_sum_over_all_calls_of_prices_taken_now(self):
        made = figures.summarise(answer([instruction("a", 9, 4, calls=2), instruction("b", 1, 1)]))
        self.assertEqual((made["predicted_us"], made["planned_us"]), (9, 15))

    def test_what_cannot_be_measured_has_the_price_of_the_plan(self):
        made = figures.summarise(answer([instruction("a", 9, None), instruction("", 1, None)]))
        self.assertEqual((made["predicted_us"], made["not_measured"]), (10, 1))

    def test_unaccounted_is_what_no_part_covers_run_by_run(self):
        made = figures.summarise(answer([], [100, 110, 130], [80, 100, 110], [10, 5, 10]))
        self.assertEqual((made["measured_us"], made["unaccounted_us"]), (110, 10))
        self.assertEqual(made["parts_us"], {"compute": 100, "layout": 10})

    def test_kernels_stand_by_their_error_whatever_its_sign(self):
        found = figures.kernel_errors(
            [
                instruction("small", 3, 2),
                instruction("late", 9, 2),
                instruction("early", 2, 12),
                instruction("", 1, None, plan_us=0),
            ]
        )
        self.assertEqual(
            [(one["kernel"], one["error_us"]) for one in found],
            [("early", -10), ("late", 7), ("small", 1), ("runtime", 1)],
        )

    def test_a_region_is_told_by_method_and_number(self):
        found = figures.regions(
            [
                instruction("a", 2, 1),
                instruction("b", 3, 4),
                instruction("c", 5, 6, region=1, device="reference"),
                instruction("d", 7, 8, method=1),
            ]
        )
        self.assertEqual(
            [(one["device"], one["predicted_us"], one["measured_us"]) for one in found],
            [("cpu", 5, 5), ("reference", 6, 5), ("cpu", 8, 7)],
        )


class Verdicts(unittest.TestCase):
    def test_errors_count_in_both_directions(self):
        found = verdict("error_each", [record("a", 130, 100), record("b", 70, 100)])
        self.assertFalse(found["held"])
        self.assertEqual([name for name, _ in found["not_held_by"]], ["a", "b"])
        self.assertTrue(verdict("error_each", [record("a", 76, 100)])["held"])

    def test_the_median_may_hold_where_single_models_do_not(self):
        records = [record("a", 101, 100), record("b", 95, 100), record("c", 200, 100)]
        found = verdict("error_median", records)
        self.assertTrue(found["held"])
        self.assertAlmostEqual(found["value"], 0.05)
        self.assertFalse(verdict("error_median", records, {"error_median": 0.04})["held"])

    def test_a_model_that_failed_breaks_each_target(self):
        records = [record("a", 2000, 2000), {"name": "b", "failed": "compile: no"}]
        for found in figures.verdicts(records):
            self.assertFalse(found["held"], found["name"])
            self.assertEqual(found["not_held_by"], [["b", None]], found["name"])

    def test_unaccounted_is_judged_on_long_runs_alone_and_without_its_sign(self):
        short, long = record("a", 900, 900, 90), record("b", 2000, 2000, -200)
        self.assertIsNone(verdict("unaccounted_each", [short])["held"])
        found = verdict("unaccounted_each", [short, long])
        self.assertEqual((found["held"], found["judged"], found["value"]), (False, 1, 0.1))

    def test_nothing_to_judge_is_neither_held_nor_broken(self):
        self.assertEqual([found["held"] for found in figures.verdicts([])], [None, None, None])


class Table(unittest.TestCase):
    def test_a_row_names_the_kernels_that_err_most(self):
        made = figures.summarise(
            answer([instruction("a", 40, 30), instruction("b", 20, 25)], [100], [55], [5])
        )
        text = table.accounting_table([{"name": "m", **made}])
        self.assertRegex(text, r"m +resident +0\.055 +0\.100 +0\.550 +40\.0% +a \+10\.0%, b -5\.0%")

    def test_notes_name_what_makes_figures_less_than_sure(self):
        made = figures.summarise(answer([instruction("a", 1, None), instruction("b", 1, 1, busy=1)]))
        lines = table.notes([{"name": "m", **made, "others_share": 0.2}], {"s": "not filled"})
        self.assertEqual(
            lines,
            [
                "m: disturbed: other work took 20 % of the cores",
                "m: prices taken while others used a core: 1",
                "m: prices of the plan, not to be measured: 1",
                "s: skipped: not filled",
            ],
        )


if __name__ == "__main__":
    unittest.main()
