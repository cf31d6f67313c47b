# SPDX-License-Identifier: Apache-2.0
"""Texts and bytes of every kind that the library reads, mutated: IR, types, command lines, cache entries and archives,
results of tuning, timelines, structs, PTX, settings, targets, formats.

    python -m tests.fuzz.texts --count 10000 --seed 0 --jobs 2

A text may end in its result or in a CuteError, and Python that is mutated in what that itself raises. Anything else is
wrong: an InternalError, another exception, more than five seconds of CPU time, a crash, a write outside the folder that
the text was given. `--show NUMBER` reads one text again.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import io
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .calls import summary
from .pool import run_all, serve

SECONDS, BYTES = 5, 6 << 30
TOKEN = re.compile(rb"[A-Za-z_]\w*|\d+|\s+|[^\w\s]")
DICTIONARY = (
    b"", b"(", b")", b"<", b">", b"[", b"]", b"{", b"}", b'"', b"'", b"\\", b"%", b"%s%n", b"{}", b"{0", b"$", b"$9",
    b"{$r9}", b"@", b"#", b"!", b"?", b":", b",", b".", b"=", b"-", b"~", b"\n", b"\t", b"\0", b"\xff\xfe", b"\xc3\xa9",
    b"0", b"-1", b"1.5", b"1e999", b"nan", b"NaN", b"true", b"null", b"None", b"i32", b"!f16", b"_", b"4294967296",
    b"-9223372036854775809", b"9" * 30, b"9" * 5000, b"(" * 3000, b"[" * 3000, b"<" * 3000, b"-" * 3000, b"x" * 5000,
    b"..", b"../", b"//", b"/*", b"list",
)  # fmt: skip
"""What a text may be given besides its own parts."""


def mutated(text: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return a text with a few changes. other: a text of the same kind, of which it may take parts."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        text = rng.choice(CHANGES)(text, other, rng)
    return text


def _span(text: bytes, rng: random.Random) -> tuple[int, int]:
    """A few tokens of a text: where they begin and end."""
    found = [m.start() for m in TOKEN.finditer(text)] + [len(text)]
    first = rng.randrange(len(found))
    return found[first], found[min(first + rng.choice((1, 1, 2, 4, 16)), len(found) - 1)]


def _flipped(text: bytes, other: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(text) + 1)
    return (
        text[:at]
        + bytes([text[at] ^ 1 << rng.randrange(8)] if at < len(text) else [rng.randrange(256)])
        + text[at + 1 :]
    )


def _replaced(text: bytes, other: bytes, rng: random.Random) -> bytes:
    (start, end), (first, last) = _span(text, rng), _span(other, rng)
    return text[:start] + rng.choice((rng.choice(DICTIONARY), other[first:last])) + text[end:]


def _inserted(text: bytes, other: bytes, rng: random.Random) -> bytes:
    start, _ = _span(text, rng)
    return text[:start] + rng.choice(DICTIONARY) + text[start:]


def _deleted(text: bytes, other: bytes, rng: random.Random) -> bytes:
    start, end = _span(text, rng)
    return text[:start] + text[end:]


def _repeated(text: bytes, other: bytes, rng: random.Random) -> bytes:
    start, end = _span(text, rng)
    return text[:end] + text[start:end] * rng.choice((1, 1, 2, 40, 1500)) + text[end:]


def _swapped(text: bytes, other: bytes, rng: random.Random) -> bytes:
    (a, b), (c, d) = sorted((_span(text, rng), _span(text, rng)))
    return text if b > c else text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def _renumbered(text: bytes, other: bytes, rng: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", text))
    if not numbers:
        return text
    at = rng.choice(numbers)
    new = rng.choice(
        (b"0", b"1", b"3", b"-1", b"256", b"65536", b"4294967295", b"18446744073709551616", b"9" * 40, b"1.5")
    )
    return text[: at.start()] + new + text[at.end() :]


def _nested(text: bytes, other: bytes, rng: random.Random) -> bytes:
    pairs = [(m.start(), m.end()) for m in re.finditer(rb"\([^()]*\)|\[[^][]*\]|<[^<>]*>|\{[^{}]*\}", text)]
    if not pairs:
        return text
    start, end = rng.choice(pairs)
    deep = rng.choice((1, 2, 50, 120, 2000))
    return text[:start] + text[start : start + 1] * deep + text[start:end] + text[end - 1 : end] * deep + text[end:]


def _cut(text: bytes, other: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"", text[: rng.randrange(len(text) + 1)], text[rng.randrange(len(text) + 1) :], text + other))


CHANGES = (
    _flipped,
    _replaced,
    _replaced,
    _inserted,
    _deleted,
    _repeated,
    _swapped,
    _renumbered,
    _renumbered,
    _nested,
    _cut,
)


class Hang(BaseException):
    """A text that takes longer than any may."""


class Outside(BaseException):
    """A write to what the text was not given."""


class Guard:
    """Refuses writes outside a folder while a text is read."""

    EVENTS = frozenset(
        {"os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod"}
    )
    WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def __init__(self, folder: Path) -> None:
        self.folder, self.reading, self.named = os.path.realpath(folder), False, ""
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.reading:
            return
        paths: tuple[Any, ...] = ()
        if event == "open" and isinstance(args[2], int) and args[2] & self.WRITES:
            paths = args[:1]
        elif event in self.EVENTS:
            paths = args[: 2 if event in ("os.rename", "os.link", "os.symlink") else 1]
        for path in paths:
            if isinstance(path, (str, bytes)) and not self._within(os.fsdecode(path)):
                if self.named and os.fsdecode(path) in self.named:
                    raise PermissionError(f"{path!r} is outside")  # where the text says that it shall write
                raise Outside(f"{event} of {path!r}")

    def _within(self, path: str) -> bool:
        real = os.path.realpath(path)
        return real.startswith((self.folder, "/dev/", "/proc/self"))


class Reader:
    """Reads texts by their numbers, and judges how that ends. folder: where it works, and writes. names: of the kinds
    that it reads, all if none is given."""

    def __init__(self, seed: int, folder: Path, names: Iterable[str] = ()) -> None:
        from .texts_kinds import encoded, kinds

        made = {name: make() for name, make in kinds(folder).items() if not names or name in names}
        self.seed, self.kinds = seed, made
        self.seeds = {name: encoded(kind) for name, kind in made.items()}
        self.guard = Guard(folder)
        signal.signal(signal.SIGVTALRM, _late)

    def text(self, number: int) -> tuple[str, bytes]:
        """Return the kind of a text, and the text."""
        rng = random.Random(f"{self.seed}:{number}")
        name = sorted(self.kinds)[number % len(self.kinds)]
        text, other = rng.choice(self.seeds[name]), rng.choice(self.seeds[name])
        return name, text if rng.random() < 0.02 else mutated(text, other, rng)

    def run(self, number: int) -> dict[str, str]:
        name, text = self.text(number)
        found = {"kind": "good", "end": "result", "number": str(number), "call": f"{name} {text!r}", "of": name}
        sink = io.StringIO()
        self.guard.named = os.fsdecode(text) if name in ("Commands", "Settings") else ""
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
                self.guard.reading = True
                self.kinds[name].read(text)
        except (Exception, Hang, Outside, SystemExit) as e:
            found |= judged(e)
        finally:
            self.guard.reading = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return found


@functools.cache
def alone(seed: int) -> Reader:
    """Make this process one that reads texts, in a folder of its own."""
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    os.environ |= dict.fromkeys(("TMPDIR", "HOME", "XDG_CACHE_HOME"), str(folder))
    tempfile.tempdir = str(folder)
    made = Reader(seed, folder)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return made


def _late(*_: Any) -> None:
    raise Hang(f"more than {SECONDS} s of CPU time")


def judged(e: BaseException) -> dict[str, str]:
    """Return how a text that raises ends, and whether that is good."""
    import numba_cute as cute

    if isinstance(e, cute.CuteError) and not isinstance(e, cute.InternalError):
        return {"end": "CuteError"}
    last = traceback.extract_tb(e.__traceback__)[-1]
    of_text = last.filename == "<text>" or last.filename == dataclasses.__file__ or _is_of_python(e, last.name)
    if of_text and not isinstance(e, (Hang, Outside)):
        return {"end": "the text's own"}
    cause = e.__cause__ or e if isinstance(e, cute.InternalError) else e
    library = [f for f in traceback.extract_tb(cause.__traceback__) if "numba_cute/" in f.filename.replace("\\", "/")]
    place = f"{library[-1].filename.partition('numba_cute/')[2]}:{library[-1].lineno}" if library else "?"
    kind = "internal" if isinstance(e, cute.InternalError) else "error"
    kind = type(e).__name__.lower() if isinstance(e, (Hang, Outside)) else kind
    return {"kind": kind, "end": kind, "place": place, "error": type(cause).__name__, "said": str(e)[:400]}


def _is_of_python(e: BaseException, at: str) -> bool:
    """Say whether Python refuses a text as Python. at: the function that was left."""
    if isinstance(e, (RecursionError, MemoryError)):
        return at == "program"
    return isinstance(e, SyntaxError) and e.filename in ("<text>", "<string>", None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", action="store_true", help="be one of the processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no text after these")
    parser.add_argument("--show", type=int, help="read this text again, here, and show how it ends")
    given = parser.parse_args()
    if given.show is not None:
        return _show(given.seed, given.show)
    if given.worker:
        serve(lambda number: alone(given.seed).run(int(number)))
        return 0
    ends: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # where each process makes its own
        numbers = ((f"number {n}", str(n)) for n in range(given.first, given.first + given.count))
        command = ("tests.fuzz.texts", "--worker", "--seed", str(given.seed))
        for found in run_all(numbers, given.jobs, command, given.seconds):
            ends[f"{found.get('of', '?')}: {found.get('end', found['kind'])}"] += 1
            if found["kind"] != "good":
                missing = dict.fromkeys(("place", "error", "said", "call"), "?") | {"number": found["source"]}
                wrong.append(missing | found)
    print(summary(wrong, 60))
    print(json.dumps(dict(sorted(ends.items())), indent=1))
    print(f"seed {given.seed}: {len(wrong)} of {sum(ends.values())} texts end wrongly")
    return bool(wrong)


def _show(seed: int, number: int) -> int:
    reader = alone(seed)
    name, text = reader.text(number)
    print(name, text, sep="\n")
    try:
        reader.kinds[name].read(text)
    except (Exception, SystemExit):
        traceback.print_exc()
    return 0


if __name__ == "__main__":
    sys.exit(main())
