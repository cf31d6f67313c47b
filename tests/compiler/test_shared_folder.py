# SPDX-License-Identifier: Apache-2.0
"""The folder of compiled kernels among many processes: who is believed, who waits for whom, what is left behind."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import time
import warnings
from pathlib import Path

import pytest

from numba_cute import config
from numba_cute.__main__ import main
from numba_cute.compiler.host import files, locks, shipped, store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
ROOT = Path(__file__).resolve().parents[2]
KEY, OTHER = "ab" * 20, "cd" * 20
ENTRY = store.Entry({"kernel": "k", "arch": "sm_90a"}, {"ptx": b"p" * 100, "cubin": b"\0\n\1"})


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.override(cache=True, cache_dir=str(tmp_path / "cache"), cache_wait=5.0):
        yield tmp_path / "cache"


def path_of(folder, key=KEY):
    return folder / key[:2] / f"{key}.kernel"


@contextlib.contextmanager
def child(work):
    """A process that does `work(ready)`; it is ended in the end."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work(lambda: os.write(write, b"."))
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    try:
        os.read(read, 1)
        yield pid
    finally:
        os.close(read)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def holding(key=KEY, what="their_kernel"):
    def work(ready):
        with store.alone(key, what):
            ready()
            time.sleep(60)

    return work


def seconds_of(key=KEY):
    """How long it takes to come to one's turn."""
    began = time.monotonic()
    with store.alone(key, "mine"):
        return time.monotonic() - began


# ------------------------------------------------------------------ whom to believe


def others_may_write(path):
    path.chmod(0o666)


def of_another_user(path):
    if os.geteuid():
        pytest.skip("only root gives files away")
    os.chown(path, 12345, 12345)


def a_symlink(path):
    real = path.with_suffix(".real")
    path.rename(real)
    path.symlink_to(real)


def a_fifo(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def a_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def a_folder(path):
    path.unlink()
    path.mkdir()


def in_a_folder_of_all(path):
    path.parent.chmod(0o777)


STRANGE = (others_may_write, of_another_user, a_symlink, a_fifo, a_device, a_folder)


@pytest.mark.parametrize("make", [*STRANGE, in_a_folder_of_all], ids=lambda f: f.__name__)
def test_a_file_that_others_may_have_made_is_no_entry(folder, make):
    store.save(KEY, ENTRY)
    assert store.load(KEY) == ENTRY
    make(path_of(folder))
    assert store.load(KEY) is None and not list(store.entries())
    store.prune(0)
    store.save(OTHER, ENTRY)
    assert store.load(OTHER) == ENTRY


@pytest.mark.parametrize("make", STRANGE, ids=lambda f: f.__name__)
def test_a_lock_that_others_may_have_made_is_neither_followed_nor_waited_for(folder, make):
    lock = path_of(folder).with_suffix(".lock")
    files.made_folder(folder), files.made_folder(lock.parent)
    lock.write_text("precious")
    lock.chmod(0o600)
    make(lock)
    assert seconds_of() < 1
    if make is a_symlink:
        assert lock.with_suffix(".real").read_text() == "precious"


def test_a_folder_that_others_may_write_keeps_nothing_and_says_so(folder):
    store.save(KEY, ENTRY)
    folder.chmod(0o777)
    store._warn_once.cache_clear()
    with pytest.warns(
        RuntimeWarning, match=r"may be written by others than its user, .*chmod go-w it, or name another"
    ):
        assert store.load(KEY) is None
    store.save(OTHER, ENTRY)
    assert store.clear() == 0 and not path_of(folder, OTHER).exists() and seconds_of(OTHER) < 1


def test_the_folder_is_made_for_its_user_alone(folder):
    before = os.umask(0)
    try:
        store.save(KEY, ENTRY)
    finally:
        os.umask(before)
    made = (folder, path_of(folder).parent, path_of(folder))
    assert [oct(p.stat().st_mode & 0o777) for p in made] == ["0o700", "0o700", "0o600"]


BODIES = {
    "no JSON": b"{\n",
    "nothing": b"",
    "a list": b"[]\n",
    "no blobs": json.dumps({"key": KEY}).encode() + b"\n",
    "blobs of texts": json.dumps({"key": KEY, "blobs": {"ptx": "x"}}).encode() + b"\n",
    "blobs that are not there": json.dumps({"key": KEY, "blobs": {"ptx": 5}}).encode() + b"\nabc",
    "blobs of less than nothing": json.dumps({"key": KEY, "blobs": {"ptx": -3, "cubin": 6}}).encode() + b"\nabc",
    "another key": json.dumps({"key": OTHER, "blobs": {}}).encode() + b"\n",
    "no text": b"\xff\xfe\n",
    "deep": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_right_checksum_over_bad_content_is_dropped(folder, body):
    files.made_folder(folder)
    files.write(path_of(folder), hashlib.sha256(body).digest() + body)
    assert not list(store.entries()) and store.load(KEY) is None and not path_of(folder).exists()


# ------------------------------------------------------------------ writers that do not end


def test_what_a_killed_writer_left_goes_and_what_one_writes_stays(folder):
    store.save(KEY, ENTRY)
    left, written = (path_of(folder).parent / f"{name}.tmp" for name in ("left", "written"))
    for path in (left, written):
        path.write_bytes(b"half")
        path.chmod(0o600)
    os.utime(left, (1e9, 1e9))
    store.save(OTHER, ENTRY)
    assert not left.exists() and written.exists()
    assert store.clear() == 2 and not written.exists()


def test_a_writer_that_is_killed_leaves_no_entry(folder, monkeypatch):
    def work(ready):
        monkeypatch.setattr(os, "replace", lambda *_: (ready(), time.sleep(60)))
        store.save(KEY, ENTRY)

    with child(work):
        pass
    assert store.load(KEY) is None and list(folder.rglob("*.tmp"))
    store.save(KEY, ENTRY)
    assert store.load(KEY) == ENTRY


def test_a_disk_that_is_full_keeps_nothing_and_leaves_nothing(folder):
    def work(ready):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
        store.save(KEY, ENTRY)
        ready()
        time.sleep(60)

    with child(work):
        assert store.load(KEY) is None and not [p for p in folder.rglob("*") if p.is_file()]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError], ids=lambda e: e.__name__)
def test_a_write_that_is_interrupted_leaves_nothing(folder, error, monkeypatch):
    def replace(*_):
        raise error

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(error):
        store.save(KEY, ENTRY)
    assert not [p for p in folder.rglob("*") if p.is_file()]


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT], ids=errno.errorcode.get)
def test_a_folder_that_takes_no_file_is_no_error(reason, monkeypatch):
    def refuse(*_, **__):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    store.save(KEY, ENTRY)
    assert store.load(KEY) is None and seconds_of() < 1


def test_a_user_without_a_home_has_no_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as it is without HOME and an entry of the user
    monkeypatch.chdir(tmp_path)
    with config.override(cache_dir=None):
        assert store.folder() is None
        store.save(KEY, ENTRY)
        assert store.load(KEY) is None and store.clear() == 0 and not list(store.entries()) and seconds_of() < 1
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ who waits for whom


def test_waiting_ends_at_its_limit_and_says_for_whom():
    shorter = config.override(**{**vars(config.current()), "cache_wait": 0.2})
    with child(holding()) as pid, shorter, pytest.warns(RuntimeWarning) as told:
        assert 0.2 <= seconds_of() < 2
    (said,) = told
    assert re.match(rf"waited 0.2 s for process {pid} on .*, which makes their_kernel, and goes on", str(said.message))


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL], ids=lambda s: s.name)
def test_a_holder_that_is_stopped_or_dead_is_not_waited_for(how):
    with child(holding()) as pid:
        os.kill(pid, how)
        time.sleep(0.05)
        assert seconds_of() < 1


def test_a_fork_has_no_lock_of_its_parent():
    def work(ready):
        with store.alone(KEY, "mine"):
            if not os.fork():
                time.sleep(5)
                os._exit(0)
            ready()
            time.sleep(60)

    with child(work) as pid:
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        with store.alone(KEY, "mine"):
            assert locks._held.count == 1  # taken, and not given up


def test_a_fork_that_leaves_its_parents_lock_does_not_free_it():
    with store.alone(KEY, "mine"):
        pid = os.fork()
        if not pid:
            os._exit(locks._held.count or bool(locks._here))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

        def work(ready):
            with config.override(**{**vars(config.current()), "cache_wait": 0.1}), warnings.catch_warnings():
                warnings.simplefilter("error")
                with contextlib.suppress(RuntimeWarning), store.alone(KEY, "theirs"):
                    os._exit(1)
            ready()
            time.sleep(5)

        with child(work) as pid:
            assert os.waitpid(pid, os.WNOHANG) == (0, 0)


def test_who_holds_a_lock_waits_for_no_other():
    with child(holding(OTHER)), store.alone(KEY, "outer"):
        assert seconds_of(OTHER) < 1
        assert seconds_of(KEY) < 1


def test_threads_of_a_process_take_turns():
    order = []

    def work(name):
        with store.alone(KEY, name):
            order.append(name)
            time.sleep(0.05)
            order.append(name)

    threads = [threading.Thread(target=work, args=(n,)) for n in "abc"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [a == b for a, b in zip(order[::2], order[1::2])] == [True] * 3 and sorted(order[::2]) == [*"abc"]


def test_no_lock_is_left_behind(folder):
    with store.alone(KEY, "mine"):
        assert list(folder.rglob("*.lock"))
    assert not list(folder.rglob("*.lock")) and not locks._here and not locks._held.count


def test_of_eight_processes_one_makes_it(folder, tmp_path):
    made, go = tmp_path / "made", time.monotonic() + 0.2

    def work():
        time.sleep(max(0, go - time.monotonic()))
        with store.alone(KEY, "mine"):
            if store.load(KEY) is None:
                with made.open("a") as file:
                    file.write(f"{os.getpid()}\n")
                time.sleep(0.1)
                store.save(KEY, ENTRY)
        os._exit(store.load(KEY) != ENTRY)

    pids = []
    for _ in range(8):
        pid = os.fork()
        if not pid:
            work()
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in pids] == [0] * 8
    assert len(made.read_text().splitlines()) == 1 and len(list(folder.rglob("*"))) == 2


PROGRAM = """
    import sys, time
    import numpy as np
    from numba import cuda
    import numba_cute as cute

    def step():
        if sys.argv[1:] == ["nested"]:
            cute.compile(inner, (np.zeros(1, np.float32),), arch="sm_90a")
        return 3

    @cuda.jit
    def inner(x):
        x[0] = cute.size(cute.make_layout(4))

    @cuda.jit
    def kernel(x):
        x[cute.arch.lane_idx()] = step()

    began = time.monotonic()
    made = cute.compile(kernel, (np.zeros(32, np.float32),), arch="sm_90a")
    print(len(made.cubin), time.monotonic() - began)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["alone", "nested", "killed", "stopped"])
def test_eight_compilers_at_once_lose_nothing_and_wait_no_longer_than_they_may(folder, tmp_path, way):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    variables = {
        **os.environ,
        "NUMBA_CUTE_CACHE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "NUMBA_CUTE_CACHE_DIR": str(folder),
        "NUMBA_CUTE_CACHE_WAIT": "20",
    }
    runs = [
        subprocess.Popen([sys.executable, str(program), way], env=variables, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    victims = runs[:3] if way in ("killed", "stopped") else []
    until = time.monotonic() + 60
    while victims and not list(folder.rglob("*.lock")) and time.monotonic() < until:
        time.sleep(0.005)
    for run in victims:
        run.send_signal(signal.SIGKILL if way == "killed" else signal.SIGSTOP)
    try:
        said = [run.communicate(timeout=120)[0] for run in runs if run not in victims]
    finally:
        for run in victims:
            run.kill()
            run.communicate()
    assert all(run.returncode == 0 for run in runs if run not in victims)
    assert len(said) == 8 - len(victims) and len({line.split()[0] for line in said}) == 1
    kept = list(folder.rglob("*.kernel"))
    assert len(kept) == (1 if way != "nested" else len(kept))
    with config.override(cache_dir=str(folder)):
        assert len(list(store.entries())) == len(kept)


# ------------------------------------------------------------------ shipping


def test_an_archive_carries_the_kernels_to_another_folder(folder, tmp_path, capsys):
    for key in (KEY, OTHER):
        store.save(key, ENTRY)
    archive = str(tmp_path / "kernels.tar.gz")
    assert main(["cache", "export", archive]) == 0
    assert capsys.readouterr().out == f"2 kernels of {folder} are in {archive}\n"
    with config.override(cache=True, cache_dir=str(tmp_path / "theirs")):
        store.save(KEY, ENTRY)
        assert main(["cache", "import", archive]) == 0 and capsys.readouterr().out.startswith("1 kernels of ")
        assert store.load(KEY) == store.load(OTHER) == ENTRY
        assert shipped.take(archive) == (0, 2)


@pytest.mark.parametrize("file", ["", "a\0b"])
@pytest.mark.parametrize("what", ["export", "import", "why"])
def test_what_is_no_name_of_a_file_is_refused_in_words(what, file, capsys):
    assert main(["cache", what, file]) == 1
    assert f"cache {what}: {file!r} is not a name of a file" in capsys.readouterr().err


def test_an_archive_is_believed_in_nothing(folder, tmp_path):
    store.save(KEY, ENTRY)
    good = path_of(folder).read_bytes()
    archive = tmp_path / "evil.tar"
    with tarfile.open(archive, "w") as out:
        for name, data in (("../../escaped.kernel", good), (f"{OTHER}.kernel", good), (f"{KEY}.kernel", good[:-1]),
                           (f"/{KEY}.txt", good), (f"{KEY}.kernel", good)):  # fmt: skip
            member = tarfile.TarInfo(name)
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))
        for kind in (tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE):
            member = tarfile.TarInfo(f"{OTHER}.kernel")
            member.type, member.linkname = kind, "/etc/passwd"
            out.addfile(member)
    with config.override(cache=True, cache_dir=str(tmp_path / "theirs")):
        assert shipped.take(archive) == (1, 7)
        assert [p.name for p in (tmp_path / "theirs").rglob("*") if p.is_file()] == [f"{KEY}.kernel"]


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b" + b"x" * 100], ids=["empty", "text", "broken"])
def test_what_is_no_archive_is_an_error_in_words(tmp_path, content, capsys):
    file = tmp_path / "file"
    file.write_bytes(content)
    assert main(["cache", "import", str(file)]) == 1 and "file" in capsys.readouterr().err
    assert main(["cache", "import", str(tmp_path / "none")]) == 1
    assert main(["cache", "import"]) == 1 and main(["cache", "list", "x"]) == 1


@pytest.mark.parametrize(
    "said",
    [b"", b"\xff", b"[]", b'{"host": 1}', b"[" * 100_000, b'{"host": "h", "pid": 1e999, "what": "k"}'],
    ids=range(6),
)
def test_a_lock_that_says_no_holder_is_something_s(said):
    assert locks._Holder(said).what == "something"
