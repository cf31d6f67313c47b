# SPDX-License-Identifier: Apache-2.0
"""Results of tuning on disk: a file for each function and key, written whole, with all that was measured."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

from .. import config

FORMAT = 1


def directory(given: Any = None) -> Path:
    """Return where results are kept: what was given, the setting `tuned`, or the user's cache."""
    found = given or config.current().tuned
    if found:
        return Path(found)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba_cute" / "tuned"


def file_of(folder: Path, name: str, identity: dict[str, Any]) -> Path:
    """Return the file of a result. identity: all that it holds for, as JSON has it."""
    digest = hashlib.sha256(json.dumps([FORMAT, identity], sort_keys=True).encode()).hexdigest()[:24]
    return folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[-80:]}-{digest}.json"


def load(file: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a file holds; None where there is none, or it is broken, or of another identity."""
    with contextlib.suppress(OSError, ValueError):
        held = json.loads(file.read_text())
        if isinstance(held, dict) and held.get("format") == FORMAT and held.get("identity") == identity:
            return held
    return None


def save(file: Path, identity: dict[str, Any], result: dict[str, Any]) -> None:
    """Write a file in one step, so that other processes see the old one or the new one. A folder that cannot be written
    to is a RuntimeWarning: the result then holds for this process alone."""
    held = {"format": FORMAT, "identity": identity, **result}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".tuned-", suffix=".json")
        try:
            with os.fdopen(handle, "w") as out:
                json.dump(held, out, indent=1)
            os.replace(temporary, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as e:
        warnings.warn(f"autotune: the result cannot be kept in {file.parent}: {e}", RuntimeWarning, stacklevel=4)
