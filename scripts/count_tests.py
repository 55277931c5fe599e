#!/usr/bin/env python3
"""Prints "N cases, M skipped" from the JSON results that GoogleTest programs wrote into a folder: count_tests.py FOLDER."""

import json
import sys
from pathlib import Path


def main():
    passed = skipped = 0
    for file in sorted(Path(sys.argv[1]).glob("*.json")):
        for suite in json.loads(file.read_text())["testsuites"]:
            for case in suite["testsuite"]:
                if case["result"] == "SKIPPED":
                    skipped += 1
                elif case["status"] == "RUN":
                    passed += 1
    print(f"{passed} cases, {skipped} skipped")


if __name__ == "__main__":
    main()
