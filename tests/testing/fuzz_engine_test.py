#!/usr/bin/env python3
"""Tests of tests/testing/fuzz_main.cpp: fuzz_engine_test.py PROGRAM, a program whose body fails on some inputs if told so."""

import os
import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()


def run(*options, trap=False):
    environment = {**os.environ, **({"TESSERA_FUZZ_TRAP": "1"} if trap else {})}
    return subprocess.run([PROGRAM, *options], capture_output=True, text=True, env=environment)


class FuzzEngine(unittest.TestCase):
    def test_a_sound_body_passes(self):
        done = run("-runs=500", "-seed=3")
        self.assertEqual(done.returncode, 0)
        self.assertIn("fuzz: 500 runs done", done.stderr)

    def test_a_fault_is_found_and_repeats_from_its_seed(self):
        done = run("-runs=100000", trap=True)
        self.assertNotEqual(done.returncode, 0)
        seed = re.search(r"fuzz: repeat with -seed=(\d+) -runs=1", done.stderr)
        self.assertIsNotNone(seed, done.stderr)
        self.assertNotEqual(run(f"-seed={seed.group(1)}", "-runs=1", trap=True).returncode, 0)
        self.assertEqual(run(f"-seed={seed.group(1)}", "-runs=1").returncode, 0)

    def test_an_unknown_option_is_refused(self):
        done = run("-fast=1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("fuzz: unknown option '-fast=1'", done.stderr)


if __name__ == "__main__":
    unittest.main()
