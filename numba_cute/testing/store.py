# SPDX-License-Identifier: Apache-2.0
"""Results of tuning on disk: a file for each function and key, written whole, with all that was measured."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from pathlib import Path
from typing import Any

from .. import config
from ..compiler.host import files

FORMAT = 2
_MOST_BYTES = 1 << 24


def directory(given: Any = None) -> Path | None:
    """Return where results are kept: what was given, the setting `tuned`, or the user's cache; None: nowhere."""
    found = given or config.current().tuned
    if found:
        return Path(found)
    usual = files.user_folder("numba_cute")
    return None if usual is None else usual / "tuned"


def file_of(folder: Path, name: str, identity: dict[str, Any]) -> Path:
    """Return the file of a result. identity: all that it holds for, as JSON has it."""
    digest = hashlib.sha256(json.dumps([FORMAT, identity], sort_keys=True).encode()).hexdigest()[:24]
    return folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[-80:]}-{digest}.json"


def load(file: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a file holds; None where there is none that this user wrote where no other may, or it is broken, or
    of another identity."""
    data = files.read(file, _MOST_BYTES)
    try:
        held = json.loads(data or b"")
        sound = held["format"] == FORMAT and held["identity"] == identity and _is_record(held)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return held if sound else None


def _is_record(held: dict[str, Any]) -> bool:
    """Say whether this is what a measurement gives: times by configuration, and why others failed."""
    times = [(t["median_us"], *t["interval_us"]) for t in held["measured"].values()]
    numbers = all(len(t) == 3 and all(type(x) in (int, float) for x in t) and t[0] > 0 for t in times)
    texts = all(isinstance(why, str) for why in held["failed"].values()) and isinstance(held["function"], str)
    return numbers and texts and held["best"] in held["measured"]


def save(file: Path, identity: dict[str, Any], result: dict[str, Any]) -> None:
    """Write a file in one step, so that other processes see the old one or the new one. A folder that cannot be written
    to is a RuntimeWarning: the result then holds for this process alone."""
    held = {"format": FORMAT, "identity": identity, **result}
    try:
        files.write(file, json.dumps(held, indent=1).encode())
        files.remove_abandoned(file.parent)
    except OSError as e:
        warnings.warn(f"autotune: the result cannot be kept in {file.parent}: {e}", RuntimeWarning, stacklevel=4)
