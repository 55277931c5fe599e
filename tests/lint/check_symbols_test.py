#!/usr/bin/env python3
"""Tests of scripts/check_symbols.py on small programs."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
RUN_SIDE = "namespace tessera::runtime { int run() { return 1; } }\n"


class CheckSymbols(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder, "lib.so")
            subprocess.run(
                ["c++", "-x", "c++", "-shared", "-fPIC", "-o", library, "-"],
                input=text,
                text=True,
                check=True,
            )
            done = subprocess.run(
                [sys.executable, ROOT / "scripts/check_symbols.py", library],
                capture_output=True,
                text=True,
            )
            return done.returncode, done.stderr

    def test_the_run_side_alone_passes(self):
        self.assertEqual(self.check(RUN_SIDE), (0, ""))

    def test_a_symbol_of_the_compiler_is_named(self):
        for name in ("ir", "importer", "passes", "solve", "plan", "compiler", "report"):
            code, text = self.check(
                RUN_SIDE + f"namespace tessera::{name} {{ void work() {{}} }}\n"
            )
            self.assertEqual(code, 1)
            self.assertIn(f"tessera::{name}::work()", text)

    def test_a_type_of_the_compiler_in_an_argument_counts(self):
        code, text = self.check(
            "namespace tessera::ir { struct Node; }\nnamespace tessera::runtime { void run(ir::Node*) {} }\n"
        )
        self.assertEqual(code, 1)
        self.assertIn("tessera::runtime::run(tessera::ir::Node*)", text)

    def test_a_binary_without_any_symbol_of_tessera_proves_nothing(self):
        code, text = self.check("int other() { return 1; }\n")
        self.assertEqual(code, 1)
        self.assertIn("holds no symbol of tessera at all", text)


if __name__ == "__main__":
    unittest.main()
