#!/usr/bin/env python3
"""Checks every #include of the tree against the table of allowed edges (scripts/include_edges.txt).

Usage: check_includes.py [--root TREE] [--table FILE]
Prints one line `file:line: what is not allowed` per fault and exits 1 if there is one; 2 if the table itself is wrong.
"""

import argparse
import os
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
TOP_FOLDERS = ("include", "src", "tools", "tests", "bench", "examples")
ANY = "*"


class TableError(Exception):
    """The table of edges is malformed; the text says where."""


class Unit:
    """One row of [units]: a folder or file, and what it may include."""

    def __init__(self, name, allowed):
        self.name = name
        self.allowed = allowed
        self.pattern = re.compile(
            re.escape(name).replace("X", r"(?P<X>[a-z0-9_]+)") + r"(?=$|[/.])"
        )

    def match(self, path):
        return self.pattern.match(path)

    def rank(self):
        """The more exact unit wins: longer first, a fixed name before X."""
        return (self.name.count("/"), "/X" not in self.name, len(self.name))


class Library:
    """One row of [libraries]: the beginnings of a library's header names, and the units that may include them."""

    def __init__(self, name, prefixes, units):
        self.name = name
        self.prefixes = tuple(prefixes)
        self.units = units

    def owns(self, header):
        return header.startswith(self.prefixes)

    def open_to(self, path):
        return ANY in self.units or any(path == u or path.startswith(u + "/") for u in self.units)


def normalise(target):
    """`base` in the table means src/base; a folder of the tree is written as it is."""
    return target if target == ANY or target.split("/")[0] in TOP_FOLDERS else "src/" + target


def parse_table(text):
    units, libraries, section, everywhere = [], [], None, []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].strip()
        if not line:
            continue
        if line in ("[units]", "[libraries]"):
            section = line
            continue
        parts = [part.split() for part in line.split(":")]
        if section == "[units]" and len(parts) == 2 and parts[0] == [ANY]:
            everywhere = parse_unit(parts, units, number).allowed
        elif section == "[units]" and len(parts) == 2 and len(parts[0]) == 1:
            units.append(parse_unit(parts, units, number))
            units[-1].allowed += everywhere
        elif section == "[libraries]" and len(parts) == 3 and len(parts[0]) == 1:
            libraries.append(Library(parts[0][0], parts[1], parts[2]))
        else:
            raise TableError(
                f"line {number}: expected 'UNIT: unit...' or 'LIBRARY: header... : unit...', found '{line}'"
            )
    return units, libraries


def parse_unit(parts, above, number):
    name = parts[0][0]
    allowed = [normalise(word) for word in parts[1]]
    known = {unit.name for unit in above}
    for target in allowed:
        if target != ANY and not is_part(target, known):
            raise TableError(
                f"line {number}: {name} may include {target}, which is not a row above it"
            )
    return Unit(name, allowed)


def is_part(target, known):
    """True where `target` is one of the rows `known`, a part of one, or one backend's instance of the row for X."""
    instance = re.sub(r"^src/backends/[a-z0-9_]+/", "src/backends/X/", target)
    return any(
        name == row or name.startswith(row + "/") for row in known for name in (target, instance)
    )


def find_unit(units, path):
    """The row that holds for `path`, and its match; (None, None) if the table has none."""
    best, found = None, None
    for unit in units:
        match = unit.match(path)
        if match and (best is None or unit.rank() > best.rank()):
            best, found = unit, match
    return best, found


def covers(allowed, path, backend):
    """True if the table word `allowed`, read in a file of `backend` (or None), covers `path`."""
    pattern = re.escape(allowed).replace("X", re.escape(backend) if backend else "[a-z0-9_]+")
    return re.match(pattern + r"(?=$|[/.])", path) is not None


def resolve(root, source, header):
    """Where in the tree the quoted `header` lies, as a path from the root; None if it is no file of the tree."""
    roots = [root / base for base in ("src", "include", "tests", "tools", "bench")]
    for folder in [source.parent, *roots]:
        if (folder / header).is_file():
            return os.path.relpath(folder / header, root)
    return None


def check_own(units, path, target):
    """What is wrong with `path` including the tree's file `target`; None if nothing is."""
    unit, match = find_unit(units, path)
    if unit is None:
        return "no row of the table holds for this file"
    is_test = path.endswith(("_test.cpp", "_test.h"))
    if is_test and target.startswith("tests/testing/"):
        return None
    backend = match.groupdict().get("X")
    own = match.group(0)
    if target.startswith(own) and find_unit(units, target)[0] is unit:
        return None
    if ANY in unit.allowed or any(covers(word, target, backend) for word in unit.allowed):
        return None
    names = " ".join(word.removeprefix("src/") for word in unit.allowed) or "nothing"
    return f"{own} may not include {target} (allowed: {names})"


def check_library(libraries, path, header):
    """What is wrong with `path` including `header` from outside of the tree; None if nothing is."""
    if "/" not in header and "." not in header:
        return None  # the C++ standard library
    for library in libraries:
        if library.owns(header):
            is_test_library = path.endswith(("_test.cpp", "_test.h")) and library.name == "googletest"
            if is_test_library or library.open_to(path):
                return None
            return f"{library.name} ({header}) is for {', '.join(library.units)} only"
    return f"{header} belongs to no library of the table"


def check_file(root, path, units, libraries):
    source = root / path
    faults = []
    for number, line in enumerate(
        source.read_text(encoding="utf-8", errors="replace").splitlines(), 1
    ):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(1) or match.group(2)
        target = resolve(root, source, header)
        if target:
            fault = check_own(units, path, target)
        else:
            fault = check_library(libraries, path, header)
            if fault and (root / "src" / header.split("/")[0]).is_dir():
                fault = f"there is no {header} in the tree"
        if fault:
            faults.append(f"{path}:{number}: {fault}")
    return faults


def tree_files(root):
    for top in TOP_FOLDERS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in (".h", ".cpp") and file.is_file():
                yield str(file.relative_to(root))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    table = arguments.table or arguments.root / "scripts" / "include_edges.txt"
    try:
        units, libraries = parse_table(table.read_text())
    except TableError as error:
        print(f"{table}: {error}", file=sys.stderr)
        return 2
    faults = []
    for path in tree_files(arguments.root):
        faults += check_file(arguments.root, path, units, libraries)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
