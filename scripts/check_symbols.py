#!/usr/bin/env python3
"""Checks that a program or shared library of the run side holds nothing of the compiler.

Usage: check_symbols.py BINARY
Prints every symbol of the compiler's namespaces, and every library that only the compiler needs; exits 1 if there is one.
"""

import re
import subprocess
import sys

NAMESPACES = ("ir", "importer", "passes", "solve", "plan", "compiler", "report")
COMPILER_SYMBOL = re.compile(r"\b(?:tessera::(?:%s)::|google::protobuf::)" % "|".join(NAMESPACES))
COMPILER_LIBRARY = re.compile(r"NEEDED.*\[(libprotobuf[^\]]*)\]")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    binary = sys.argv[1]
    symbols = output_of("nm", "--demangle", binary).splitlines()
    if not any("tessera::" in line for line in symbols):
        print(
            f"{binary}: holds no symbol of tessera at all, so there is nothing to judge",
            file=sys.stderr,
        )
        return 1
    faults = [line for line in symbols if COMPILER_SYMBOL.search(line)]
    faults += [
        "needs " + name
        for name in COMPILER_LIBRARY.findall(output_of("readelf", "--dynamic", binary))
    ]
    for fault in faults:
        print(f"{binary}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
