#!/usr/bin/env python3
"""Test of scripts/count_tests.py."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))


def result(*cases):
    return json.dumps(
        {
            "testsuites": [
                {"testsuite": [{"status": status, "result": outcome} for status, outcome in cases]}
            ]
        }
    )


class CountTests(unittest.TestCase):
    def test_cases_of_all_programs_are_summed(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "one.json").write_text(
                result(("RUN", "COMPLETED"), ("RUN", "SKIPPED"), ("NOTRUN", "SUPPRESSED"))
            )
            Path(folder, "two.json").write_text(result(("RUN", "COMPLETED"), ("RUN", "COMPLETED")))
            done = subprocess.run(
                [sys.executable, ROOT / "scripts/count_tests.py", folder],
                capture_output=True,
                text=True,
            )
        self.assertEqual((done.returncode, done.stdout), (0, "3 cases, 1 skipped\n"))


if __name__ == "__main__":
    unittest.main()
