#!/usr/bin/env python3
"""Tests of scripts/run_clang_tidy.py's memory, with a clang-tidy that only notes on which files it was called."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "scripts"))

import run_clang_tidy  # noqa: E402

FAKE_TOOL = """#!/bin/sh
case "$1" in --version) echo version 1; exit 0;; esac
for file; do :; done
basename "$file" >> "$CALLS"
if grep -q BAD "$file"; then echo "$file: bad"; exit 1; fi
"""


class RunClangTidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "tree"
        for name, text in {
            "src/base/a.cpp": '#include "base/a.h"\n',
            "src/base/a.h": '#include "base/deep.h"\n',
            "src/base/deep.h": "// one\n",
            "src/base/b.cpp": "int b;\n",
            "src/base/b_test.cpp": "",
            ".clang-tidy": "Checks: '*'\n",
            "bin/clang-tidy": FAKE_TOOL,
        }.items():
            self.write(name, text)
        (self.root / "bin/clang-tidy").chmod(0o755)
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/run_clang_tidy.py", self.root / "scripts")
        self.calls = self.root / "calls.txt"
        entries = [
            {
                "directory": str(self.root),
                "file": f"src/base/{name}.cpp",
                "command": f"g++ -c src/base/{name}.cpp",
            }
            for name in ("a", "b", "b_test")
        ]
        self.write("build/compile_commands.json", json.dumps(entries))

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self):
        """Runs the script; returns its exit code, and the files that it looked at."""
        self.calls.write_text("")
        environment = {
            **os.environ,
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "XDG_CACHE_HOME": str(self.root / "cache"),
        }
        done = subprocess.run(
            [
                sys.executable,
                self.root / "scripts/run_clang_tidy.py",
                "--build",
                self.root / "build",
            ],
            env=environment,
            capture_output=True,
            text=True,
        )
        self.output = done.stdout + done.stderr
        return done.returncode, sorted(self.calls.read_text().split())

    def test_tests_are_left_out_and_clean_files_are_remembered(self):
        self.assertEqual(self.run_tool(), (0, ["a.cpp", "b.cpp"]))
        self.assertEqual(self.run_tool(), (0, []))
        self.assertIn("clang-tidy: 2 files, 2 known to be clean, 0 with findings", self.output)

    def test_a_change_in_a_header_behind_a_header_counts(self):
        self.run_tool()
        self.write("src/base/deep.h", "// two\n")
        self.assertEqual(self.run_tool(), (0, ["a.cpp"]))

    def test_a_change_of_the_settings_counts(self):
        self.run_tool()
        self.write(".clang-tidy", "Checks: 'bugprone-*'\n")
        self.assertEqual(self.run_tool(), (0, ["a.cpp", "b.cpp"]))

    def test_a_file_with_findings_is_looked_at_again(self):
        self.write("src/base/b.cpp", "int BAD;\n")
        self.assertEqual(self.run_tool(), (1, ["a.cpp", "b.cpp"]))
        self.assertIn("src/base/b.cpp: bad", self.output)
        self.assertEqual(self.run_tool(), (1, ["b.cpp"]))

    def test_clang_is_spared_what_only_gcc_understands(self):
        command = "g++ -O2 -fpch-preprocess --param ggc-min-expand=300 --param ggc-min-heapsize=1 -Winvalid-pch -include /b/cmake_pch.hxx -c a.cpp"
        self.assertEqual(run_clang_tidy.for_clang(command), "g++ -O2 -c a.cpp")


if __name__ == "__main__":
    unittest.main()
