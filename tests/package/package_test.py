#!/usr/bin/env python3
"""Installs a build into an empty folder, builds examples/consumer against it, and runs that on a compiled model.

Usage: package_test.py BUILD_DIR
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop())
ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))


def field(number, value):
    """One protobuf field: a number, or a message or text with its length (all below 128)."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def tensor(name, *dims):
    """An fp32 ValueInfoProto."""
    shape = b"".join(field(1, field(1, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def relu_model():
    """y = Relu(x), x of 2x3 floats, as the bytes of a ModelProto."""
    node = field(1, "x") + field(2, "y") + field(3, "relu") + field(4, "Relu")
    graph = (
        field(1, node)
        + field(2, "graph")
        + field(11, tensor("x", 2, 3))
        + field(12, tensor("y", 2, 3))
    )
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = cls.folder / "installed"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        run(
            "cmake",
            "-G",
            "Ninja",
            "-S",
            ROOT / "examples/consumer",
            "-B",
            cls.folder / "build",
            f"-DCMAKE_PREFIX_PATH={cls.prefix}",
        )
        run("cmake", "--build", cls.folder / "build")
        cls.consumer = cls.folder / "build" / "consumer"

    def test_a_model_compiled_by_the_installed_command_runs_in_the_consumer(self):
        model, artefact = self.folder / "relu.onnx", self.folder / "relu.tsr"
        model.write_bytes(relu_model())
        run(self.prefix / "bin/tessera", "compile", model, "-o", artefact, "--devices", "cpu")
        self.assertEqual(run(self.consumer, artefact), "y: 0 0 1 0 0 1\n")

    def test_the_consumer_says_why_a_file_cannot_be_loaded(self):
        done = subprocess.run(
            [self.consumer, self.folder / "missing.tsr"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing.tsr", done.stderr)

    def test_only_the_public_interface_is_installed(self):
        headers = sorted(
            str(path.relative_to(self.prefix / "include"))
            for path in (self.prefix / "include").rglob("*.h")
        )
        expected = sorted(f"tessera/{path.name}" for path in (ROOT / "include/tessera").glob("*.h"))
        self.assertEqual(headers, expected)


if __name__ == "__main__":
    unittest.main()
