#!/usr/bin/env python3
"""Tests of scripts/check_includes.py: small trees with one fault each, and the tree's own table."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
SCRIPT = ROOT / "scripts" / "check_includes.py"
TABLE = ROOT / "scripts" / "include_edges.txt"

EMPTY = {
    "src/base/shape.h": "",
    "src/ir/ir.h": "",
    "src/plan/plan.h": "",
    "src/backends/cpu/run/run.h": "",
    "src/backends/run_interface.h": "",
    "src/backends/reference/run/run.h": "",
    "include/tessera/session.h": "",
}


class CheckIncludes(unittest.TestCase):
    def check(self, files, table=TABLE):
        """Runs the script over a tree of `files`; returns its exit code and what it says."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**EMPTY, **files}.items():
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run(
                [sys.executable, SCRIPT, "--root", root, "--table", table],
                capture_output=True,
                text=True,
            )
            return done.returncode, done.stderr.strip()

    def fault(self, files):
        code, text = self.check(files)
        self.assertEqual(code, 1, text)
        return text

    def passes(self, files):
        self.assertEqual(self.check(files), (0, ""))

    def test_an_allowed_edge_passes(self):
        self.passes(
            {"src/ir/ir.cpp": '#include "ir/ir.h"\n#include "base/shape.h"\n#include <vector>\n'}
        )

    def test_an_edge_upwards_is_named_with_its_line(self):
        text = self.fault({"src/ir/ir.cpp": '#include "ir/ir.h"\n\n#include "plan/plan.h"\n'})
        self.assertEqual(
            text,
            "src/ir/ir.cpp:3: src/ir may not include src/plan/plan.h (allowed: base ops "
            "include/tessera/error.h include/tessera/dtype.h)",
        )

    def test_a_relative_include_does_not_get_around_the_table(self):
        self.assertIn(
            "src/ir may not include src/plan/plan.h",
            self.fault({"src/ir/ir.cpp": '#include "../plan/plan.h"\n'}),
        )

    def test_a_backend_may_not_include_another_backend(self):
        text = self.fault(
            {"src/backends/cpu/run/a.cpp": '#include "backends/reference/run/run.h"\n'}
        )
        self.assertIn("src/backends/cpu/run may not include src/backends/reference/run/run.h", text)

    def test_the_simulated_backend_may_include_the_reference(self):
        self.passes(
            {"src/backends/simulated/run/a.cpp": '#include "backends/reference/run/run.h"\n'}
        )

    def test_only_the_registry_names_a_concrete_backend(self):
        include = '#include "backends/cpu/run/run.h"\n'
        self.passes({"src/backends/registry_run.cpp": include})
        self.assertIn(
            "src/backends may not include", self.fault({"src/backends/other.cpp": include})
        )
        self.assertIn("src/plan may not include", self.fault({"src/plan/plan.cpp": include}))

    def test_a_run_half_may_not_include_the_compile_half(self):
        self.passes({"src/backends/cpu/compile/a.cpp": '#include "backends/cpu/run/run.h"\n'})
        text = self.fault(
            {
                "src/backends/cpu/compile/compile.h": "",
                "src/backends/cpu/run/a.cpp": '#include "backends/cpu/compile/compile.h"\n',
            }
        )
        self.assertIn(
            "src/backends/cpu/run may not include src/backends/cpu/compile/compile.h", text
        )

    def test_the_public_interface_is_not_for_the_compiler(self):
        include = '#include "tessera/session.h"\n'
        self.passes({"src/runtime/session.cpp": include})
        self.assertIn(
            "src/solve may not include include/tessera/session.h",
            self.fault({"src/solve/solve.cpp": include}),
        )

    def test_a_library_is_for_its_units_only(self):
        self.passes({"src/backends/cpu/run/a.cpp": "#include <oneapi/dnnl/dnnl.hpp>\n"})
        self.assertEqual(
            self.fault({"src/plan/plan.cpp": "#include <oneapi/dnnl/dnnl.hpp>\n"}),
            "src/plan/plan.cpp:1: onednn (oneapi/dnnl/dnnl.hpp) is for src/backends/cpu only",
        )

    def test_an_unknown_library_must_enter_the_table(self):
        self.assertEqual(
            self.fault({"src/base/a.cpp": "#include <boost/any.hpp>\n"}),
            "src/base/a.cpp:1: boost/any.hpp belongs to no library of the table",
        )

    def test_a_missing_file_of_the_tree_is_named(self):
        self.assertEqual(
            self.fault({"src/base/a.cpp": '#include "base/gone.h"\n'}),
            "src/base/a.cpp:1: there is no base/gone.h in the tree",
        )

    def test_a_unit_test_may_include_the_test_library(self):
        include = "#include <gtest/gtest.h>\n"
        self.passes({"src/base/shape_test.cpp": include})
        self.assertIn("googletest", self.fault({"src/base/shape.cpp": include}))

    def test_a_folder_without_a_row_is_a_fault(self):
        text = self.fault({"src/new/a.cpp": '#include "base/shape.h"\n'})
        self.assertEqual(text, "src/new/a.cpp:1: no row of the table holds for this file")

    def test_the_table_has_no_cycle(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as table:
            table.write("[units]\nsrc/a: b\nsrc/b:\n")
            table.flush()
            code, text = self.check({}, table.name)
        self.assertEqual(code, 2)
        self.assertIn("line 2: src/a may include src/b, which is not a row above it", text)

    def test_a_malformed_row_is_named(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as table:
            table.write("[units]\nsrc/a b\n")
            table.flush()
            code, text = self.check({}, table.name)
        self.assertEqual(code, 2)
        self.assertIn(
            "line 2: expected 'UNIT: unit...' or 'LIBRARY: header... : unit...', found 'src/a b'",
            text,
        )


if __name__ == "__main__":
    unittest.main()
