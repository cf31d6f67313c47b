# SPDX-License-Identifier: Apache-2.0
"""A folder of compiled kernels as one archive, for images and clusters."""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from pathlib import PurePosixPath
from typing import Any

from ...seam import CuteError
from . import store


def export(file: Any) -> int:
    """Write all kernels of the folder to an archive, a .tar.gz; gives how many. OSError: it cannot be written."""
    count = 0
    with tarfile.open(file, "w:gz") as archive:
        for key, data in store.packed():
            member = tarfile.TarInfo(f"{key}.kernel")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
            count += 1
    return count


def take(file: Any) -> tuple[int, int]:
    """Read the kernels of an archive that `export` wrote into the folder. What runs is what the archive's author
    compiled: take it from whom you would take code. Gives (how many were taken, how many were not: they are there, or
    broken). CuteError: it is not an archive. OSError: it cannot be read."""
    taken = left = 0
    try:
        with tarfile.open(file, "r:*") as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                held = archive.extractfile(member) if member.isreg() and member.size <= store.MOST_BYTES else None
                sound = held is not None and path.suffix == ".kernel" and store.take(path.stem, held.read())
                taken, left = taken + sound, left + (not sound)
    except (tarfile.TarError, EOFError, ValueError, zlib.error, lzma.LZMAError, OSError) as e:
        if getattr(e, "errno", None) is not None:  # of the system: those of what is compressed have no number
            raise
        raise CuteError(f"cache import: {file} is not an archive of kernels: {e}") from e
    return taken, left
