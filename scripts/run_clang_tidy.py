#!/usr/bin/env python3
"""Runs clang-tidy over the tree's sources, in parallel, and remembers which were clean.

Usage: run_clang_tidy.py --build BUILD_DIR [--jobs N] [FILE...]
Reads BUILD_DIR/compile_commands.json; without FILEs it takes all sources of src/ and tools/ but the unit tests.
A file is skipped when it was clean with the same text, the same headers of the tree, the same settings, the same command and the
same clang-tidy; the memory is ${XDG_CACHE_HOME:-~/.cache}/tessera/tidy. Exits 1 if a file has a finding.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.M)


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tessera" / "tidy"


@functools.lru_cache(maxsize=None)
def read(path):
    """The bytes of `path`, or None; and the headers of the tree that it includes directly."""
    try:
        data = path.read_bytes()
    except OSError:
        return None, ()
    return data, tuple(name.decode() for name in INCLUDE.findall(data))


def closure(source, roots):
    """`source` and every header of the tree or the build folder that it includes, directly or not, sorted."""
    seen, todo = set(), [source]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for header in read(path)[1]:
            found = next(
                (
                    root / header
                    for root in (path.parent, *roots)
                    if read(root / header)[0] is not None
                ),
                None,
            )
            if found:
                todo.append(Path(os.path.normpath(found)))
    return sorted(seen)


def key_of(source, command, build, settings):
    """The content hash of all that the findings for `source` depend on. Free of absolute paths, so that clones share."""

    def short(text):
        return text.replace(str(build), "BUILD").replace(str(ROOT), "ROOT").encode()

    digest = hashlib.sha256(settings + short(command))
    generated = [
        Path(folder)
        for folder in re.findall(r"-(?:I|isystem)\s*(\S+)", command)
        if folder.startswith(str(build))
    ]
    for path in closure(source, [ROOT / "src", ROOT / "include", ROOT / "tools", *generated]):
        data = read(path)[0]
        digest.update(short(f"{path} {len(data)}\n") + data)
    return digest.hexdigest()


def for_clang(command):
    """The command without what g++ alone understands: its precompiled headers, the parameters of its garbage collector."""
    only_gcc = r" -Winvalid-pch| -fpch-preprocess| -include \S*cmake_pch\.hxx| --param ggc-\S+"
    return re.sub(only_gcc, "", command)


def wanted(entries, files):
    """The (source, command) pairs to look at."""
    chosen = []
    for entry in entries:
        source = Path(entry["directory"], entry["file"]).resolve()
        if files and source not in files:
            continue
        if not any(
            top in source.parents for top in (ROOT / "src", ROOT / "tools")
        ) or source.name.endswith("_test.cpp"):
            continue
        chosen.append((source, for_clang(entry["command"])))
    return sorted(set(chosen))


def tidy(source, commands):
    """Runs clang-tidy on one file; returns its findings, "" if there are none."""
    headers = f"^{re.escape(str(ROOT))}/(src|include|tools)/"
    command = ["clang-tidy", "--quiet", f"--header-filter={headers}", "-p", commands, source]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stdout or done.stderr).strip()


def settings_of():
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    return version + (ROOT / ".clang-tidy").read_bytes()


def forget_old(cache, days=60):
    """Drops what no run has asked for in `days`."""
    for entry in cache.iterdir():
        if entry.stat().st_mtime < time.time() - days * 86400:
            entry.unlink(missing_ok=True)


def is_clean(cache, key):
    entry = cache / key
    if not entry.exists():
        return False
    entry.touch()
    return True


def look_at(work, commands, jobs, cache):
    """Runs clang-tidy on the (source, key) pairs `work`; prints findings, remembers clean files; returns the number of bad files."""
    bad = 0
    terminal = sys.stderr.isatty()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {pool.submit(tidy, source, commands): (source, key) for source, key in work}
        for count, run in enumerate(concurrent.futures.as_completed(runs), 1):
            source, key = runs[run]
            findings = run.result()
            if findings:
                bad += 1
                print(findings)
            else:
                (cache / key).touch()
            if terminal:
                print(
                    f"\r\033[Kclang-tidy [{count}/{len(work)}] {source.relative_to(ROOT)}",
                    end="",
                    file=sys.stderr,
                )
    if terminal and work:
        print("\r\033[K", end="", file=sys.stderr)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*", type=lambda name: Path(name).resolve())
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    settings = settings_of()
    entries = json.loads((build / "compile_commands.json").read_text())
    sources = wanted(entries, arguments.files)
    keyed = [(source, key_of(source, command, build, settings)) for source, command in sources]
    work = [(source, key) for source, key in keyed if not is_clean(cache, key)]
    with tempfile.TemporaryDirectory() as commands:
        for entry in entries:
            entry["command"] = for_clang(entry["command"])
        Path(commands, "compile_commands.json").write_text(json.dumps(entries))
        bad = look_at(work, commands, arguments.jobs, cache)
    forget_old(cache)
    print(
        f"clang-tidy: {len(keyed)} files, {len(keyed) - len(work)} known to be clean, {bad} with findings"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
