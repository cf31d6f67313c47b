# SPDX-License-Identifier: Apache-2.0
"""`python -m numba_cute`: the command line. `ir` reads a module of the CuTe IR, runs passes over it, and prints it, or
writes it as Python (`ir lift`); `opt` does so for the dialect that NVIDIA published, with the options of MLIR's tools;
`run` runs its programs, and Python files that are written for the CuTe DSL; `cache` lists the kernels that are kept on
disk, removes them, or ships them."""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .inspecting import load
from .seam import CuteError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code. arguments: in place of the process's."""
    parser = argparse.ArgumentParser(prog="python -m numba_cute", description="CuTe for Numba, at the command line.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_ir(commands.add_parser("ir", help="read a module of the CuTe IR, run passes over it, and print it"))
    commands.add_parser("opt", help="the same for the dialect as NVIDIA published it: -split-input-file and the like")
    _add_run(commands.add_parser("run", help="run a Python file of the CuTe DSL, or a program of its IR"))
    _add_cache(commands.add_parser("cache", help="list the kernels that are kept on disk, remove or ship them"))
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["opt"]:
        return _opt(words[1:])
    if words[:2] == ["ir", "lift"]:
        words[1] = "--lift"
    given = parser.parse_args(words)
    if given.command == "run":
        return _run_python(given) if given.file.endswith(".py") else _run(given.file, given.entry)
    try:
        if given.command == "cache":
            print(_cache(given.what, given.file), end="")
            return 0
        text = _ir(given)
    except CuteError as e:
        print(e, file=sys.stderr)
        return 1
    except OSError as e:
        print(f"{given.file}: {e.strerror or e}", file=sys.stderr)
        return 1
    if given.output is None:
        print(text, end="")
    else:
        given.output.write_bytes(text.encode())
    return 0


def _opt(words: Sequence[str]) -> int:
    """Run `opt`; gives the exit code."""
    try:
        load()
        from .ir.dialect import opt

        options = opt.parsed(words)
        made = opt.run(_text(options.file), options)
    except CuteError as e:
        print(e, file=sys.stderr)
        return 1
    except OSError as e:
        print(f"opt: {e.filename}: {e.strerror or e}", file=sys.stderr)
        return 1
    print(made.text, end="")
    for problem in made.problems:
        print(problem, file=sys.stderr)
    return 1 if made.problems else 0


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("file", metavar="FILE", help="FILE.py, whose `import cutlass` is this library; or the text of a "
                     "program of the IR, which is run on the host; - is what comes in")  # fmt: skip
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="what FILE.py finds in sys.argv")
    run.add_argument("--simulate", action="store_true", help="of FILE.py: simulate its kernels; there need be no GPU")
    run.add_argument("--arch", default="sm_90a", metavar="ARCH", help='of --simulate: the GPU, as "sm_100a"')
    run.add_argument("--checks", metavar="NAME[,NAME]", help="of --simulate: these checks of the simulator alone; none")
    run.add_argument("--seed", type=int, metavar="N", help="of --simulate: another order of threads")
    run.add_argument("--sms", type=int, metavar="N", help="of --simulate: how many SMs the GPU has; persistent kernels "
                     "fill them all, a few take less time")  # fmt: skip
    run.add_argument("--compile", action="store_true", help="of --simulate: compile what cute.compile is given, too")
    run.add_argument("-e", "--entry", default="main", metavar="NAME", help="of the IR: the function that is run")


def _run_python(given: argparse.Namespace) -> int:
    """Run a Python file; gives the exit code. What it raises is shown as Python shows it."""
    from .compat.running import run_file
    from .compat.runs import Run

    run = None
    names = None if given.checks is None else [n for n in given.checks.split(",") if n not in ("", "none")]
    checks = True if names is None else names or False
    try:
        if given.simulate:
            run = Run(given.arch, compiles=given.compile, checks=checks, seed=given.seed, sms=given.sms)
        run_file(given.file, given.arguments, run)
    except CuteError as e:
        print(e, file=sys.stderr)
        return 1
    for kernel in run.kernels if run is not None else ():
        used = kernel.resources
        print(f"{kernel.name}: {used.registers} registers, {used.spill_stores} bytes spilled, {used.shared} static and "
              f"{used.dynamic_shared} dynamic bytes of shared memory", file=sys.stderr)  # fmt: skip
    return 0


def _run(file: str, entry: str) -> int:
    """Run a program of the IR; gives the exit code."""
    try:
        load()
        from .ir.dialect import modules, running

        found = modules.read(_text(file))
        for problem in found.problems:
            print(problem.shown(file), file=sys.stderr)
        if found.op is None or found.problems:
            return 1
        running.run(found.op, lambda text: print(text, end=""), os.environ, entry)
    except (CuteError, OSError) as e:
        print(f"{file}: {e.strerror if isinstance(e, OSError) else e}", file=sys.stderr)
        return 1
    return 0


def _add_ir(ir: argparse.ArgumentParser) -> None:
    ir.add_argument("file", metavar="FILE", help="the module's text; - is what comes in")
    ir.add_argument(
        "--pass", dest="passes", action="append", default=[], metavar="NAME[,NAME]",
        help="passes, in this order; `list` lists them",
    )  # fmt: skip
    ir.add_argument(
        "--module", dest="modules", action="append", default=[], metavar="NAME",
        help="a module to import whose functions and classes the text may name; what it names of others stays a symbol",
    )  # fmt: skip
    ir.add_argument(
        "--lift", action="store_true", help="write the module as Python instead; `ir lift FILE` is the same"
    )
    ir.add_argument("--target", metavar="ARCH", help='the GPUs that it is for, in place of what it says: "sm_90a"')
    ir.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where the module goes, in place of what goes out"
    )


def _add_cache(cache: argparse.ArgumentParser) -> None:
    cache.add_argument("what", choices=("list", "clear", "path", "export", "import", "why"), nargs="?", default="list")
    cache.add_argument(
        "file", nargs="?", metavar="FILE", help="of export and import: the archive, a .tar.gz; of why: FILE.py:KERNEL"
    )


def _cache(what: str, file: str | None) -> str:
    from .compiler.host import shipped, store

    if (file is None) == (what in ("export", "import", "why")):
        raise CuteError(f"cache {what} takes {'a file' if file is None else 'no file'}")
    if file is not None and (not file or "\0" in file):
        raise CuteError(f"cache {what}: {file!r} is no name of a file")
    if file is not None and what == "why":
        return _why(*_kernel_of(file))
    if what == "path":
        return f"{store.folder()}\n"
    if file is not None and what == "export":
        return f"{shipped.export(file)} kernels of {store.folder()} are in {file}\n"
    if file is not None:
        taken, left = shipped.take(file)
        return f"{taken} kernels of {file} are in {store.folder()}, {left} were there, are broken, or are none\n"
    if what == "clear":
        return f"{store.clear()} kernels removed from {store.folder()}\n"
    lines, total = [], 0
    for key, used, size, entry in store.entries():
        facts = entry.facts
        when = datetime.datetime.fromtimestamp(used).isoformat(" ", "minutes")
        lines.append(f"{key[:12]}  {when}  {size:>9,} B  {facts.get('arch', '?')!s:<8}  {facts.get('kernel', '?')}\n")
        total += size
    return "".join([*lines, f"{len(lines)} kernels, {total:,} bytes, in {store.folder()}\n"])


def _why(kernel: Any, name: str) -> str:
    """Say whether a kernel is kept, and if not why."""
    from .compiler.host import disk_cache

    key = disk_cache.key_of(getattr(kernel, "py_func", kernel), (), getattr(kernel, "targetoptions", {}), "", "kernel")
    if key.text is not None:
        return f"{name} is kept in the disk cache: all that compiling it reads can be followed\n"
    return f"{name} is not kept in the disk cache: {key.why or 'the cache is off (NUMBA_CUTE_CACHE=0)'}\n"


def _kernel_of(file: str) -> tuple[Any, str]:
    """Return the kernel that FILE.py:KERNEL names, and its name."""
    path, _, name = file.rpartition(":")
    if not os.path.isfile(path):
        raise CuteError(f"cache why {file}: there is no file {path!r}; name a kernel as FILE.py:KERNEL")
    sys.path.insert(0, str(Path(path).resolve().parent))
    kernel = getattr(_module(Path(path).stem, "cache why "), name, None)
    if not callable(kernel):
        raise CuteError(f"cache why {file}: {path} has no kernel {name!r}")
    return kernel, name


def _module(name: str, what: str = "--module ") -> Any:
    try:
        return importlib.import_module(name)
    except Exception as e:  # the user's module may do anything
        said = e if isinstance(e, ImportError) else f"{type(e).__name__}: {e}"
        raise CuteError(f"{what}{name}: {said}") from e


def _text(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode()
    except ValueError as e:  # no UTF-8, or no name of a file
        raise CuteError(f"{file}: {e}") from e


def _ir(given: argparse.Namespace) -> str:
    load()
    from .ir import parse, passes, to_python

    names = [name for group in given.passes for name in group.split(",") if name]
    if names == ["list"]:
        return "".join(f"{name}: {(p.__doc__ or '').splitlines()[0]}\n" for name, p in passes.PASSES.items())
    text = _text(given.file)
    modules = [_module(name) for name in given.modules]
    module = parse(text, "<stdin>" if given.file == "-" else given.file, given.target, names=modules)
    module = passes.run(module, names) if names else module
    return to_python(module) if given.lift else str(module)


if __name__ == "__main__":
    sys.exit(main())
