# SPDX-License-Identifier: Apache-2.0
"""Check that a tag, the package and the changelog say one version, or print that version's part of the changelog.

python -m tests.release v0.2.0             exit status 1, and what differs, if they do not agree
python -m tests.release v0.2.0 --notes     the changes, for the release's page
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes_of(version: str, changelog: str) -> str:
    """Give what a changelog says of a version, without its heading; empty if it has none."""
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def differences(tag: str, project: str, package: str, changelog: str) -> list[str]:
    """List what stands against a release. tag: as of git. project, package, changelog: the text of pyproject.toml, of
    numba_cute/__init__.py and of CHANGELOG.md."""
    version = tag.removeprefix("v")
    said = {
        "pyproject.toml": re.search(r'^version = "(.*)"', project, re.MULTILINE),
        "numba_cute/__init__.py": re.search(r'^__version__ = "(.*)"', package, re.MULTILINE),
    }
    wrong = [] if re.fullmatch(r"v\d+\.\d+\.\d+", tag) else [f"{tag} is not a tag of a release: v1.2.3"]
    wrong += [
        f"{file} says {m and m[1]}, and the tag {version}" for file, m in said.items() if not m or m[1] != version
    ]
    headings = re.findall(r"^## (\S+)", changelog, re.MULTILINE)
    wrong += [f"CHANGELOG.md has ## {name} twice" for name in sorted(set(headings)) if headings.count(name) > 1]
    return wrong if notes_of(version, changelog) else [*wrong, f"CHANGELOG.md has nothing under ## {version}"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag")
    parser.add_argument("--notes", action="store_true")
    options = parser.parse_args(arguments)
    files = ("pyproject.toml", "numba_cute/__init__.py", "CHANGELOG.md")
    project, package, changelog = ((ROOT / name).read_text() for name in files)
    if options.notes:
        print(notes_of(options.tag.removeprefix("v"), changelog))
        return 0
    wrong = differences(options.tag, project, package, changelog)
    print("\n".join(wrong or [f"{options.tag} can be released"]))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
