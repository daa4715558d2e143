"""One save after another, each with a fault at one of its system calls; run by `test_saves.py`.

    python save_under_strace.py FOLDER SCENARIO EVERY

Every so manyth call, and every one that gives a name, with every kind of fault: how many saves
ended how is printed as JSON. The save runs in a child that has stopped itself, so that strace
counts its calls and no others.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from checkpoint_files import describe, make_checkpoint
from waiting import exit_code, wait_until

from pixelpong.errors import CheckpointError, RunError
from pixelpong.run import checkpoints
from pixelpong.run.checkpoints import Checkpoint, CheckpointStore

SCENARIOS = ("first", "fourth", "scored", "mended")
"""No checkpoint is there; two are, and the older goes; the newest is saved again with a score;
the newest is damaged, and replaced."""

FAULTS = (
    ("kill", False), ("ENOSPC", False), ("ENOSPC", True), ("EIO", False), ("EIO", True)
)  # fmt: skip
"""What happens at a call, and whether it happens to all calls from there on."""

NOT_OF_THE_DISK = re.compile(
    r"brk|m(un|re)?map|madvise|mprotect|futex|rt_sig.*|get.?.id|exit.*|getrandom|sched_.*|clock_.*"
)
EXTRA_CALLS = (
    "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "openat", "getdents64",
    "newfstatat", "fstat", "statx", "close", "write", "ftruncate",
)  # fmt: skip
"""That the way out of an error may make, whether the save itself does or not."""


FSYNC = os.fsync


def prepare(folder: Path, scenario: str) -> tuple[CheckpointStore, Checkpoint]:
    """The checkpoints that are there, and the one to be saved."""
    shutil.rmtree(folder, ignore_errors=True)
    store = CheckpointStore(folder / "checkpoints")
    store.folder.mkdir(parents=True)
    if scenario == "first":
        return store, make_checkpoint(1)
    for update in (1, 2, 3):
        store.save(make_checkpoint(update))
    if scenario == "mended":
        store.path(3).write_text("damaged")
    return store, make_checkpoint(*{"fourth": (4,), "scored": (3, 0.5), "mended": (3,)}[scenario])


def load(store: CheckpointStore) -> str:
    """What a resume would find."""
    try:
        return describe(store.load_latest())
    except CheckpointError as error:
        return "none" if "There are no checkpoints" in str(error) else str(error)


def save_in_child(store: CheckpointStore, new: Checkpoint, arguments: list[str], log: Path):
    """Whether the save was killed, and what it said: through memory, out of a fault's reach."""
    words = mmap.mmap(-1, 1 << 16)

    def tell(kind: str, text: object) -> None:
        words.write(json.dumps([kind, str(text)]).encode() + b"\n")

    child = os.fork()
    if child == 0:
        os.fsync = FSYNC
        checkpoints.warn = functools.partial(tell, "warning")
        os.kill(os.getpid(), signal.SIGSTOP)
        try:
            store.save(new)
            tell("saved", "")
        except RunError as error:
            tell("refused", error)
        except BaseException as error:
            tell("bug", repr(error))
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    tracer = subprocess.Popen(
        ["strace", "-qq", "-p", str(child), "-o", str(log), *arguments], stderr=subprocess.PIPE
    )

    def is_traced() -> bool:
        return "TracerPid:\t0" not in Path(f"/proc/{child}/status").read_text()

    wait_until(lambda: is_traced() or tracer.poll() is not None)
    if tracer.poll() is not None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise SystemExit(f"strace cannot be had: {tracer.stderr.read().decode().strip()}")
    os.kill(child, signal.SIGCONT)
    _, status = os.waitpid(child, 0)
    with tracer:  # whose pipe is closed then
        exit_code(tracer)
    told = [json.loads(line) for line in words[:].rstrip(b"\0").splitlines()]
    return os.WIFSIGNALED(status), told


def list_calls(log: Path) -> list[str]:
    """The names of the system calls that strace has written down, without the last."""
    lines = log.read_text().splitlines()
    names = [line.partition("(")[0] for line in lines if re.match(r"[a-z_0-9]+\(", line)]
    return names[: names.index("exit_group")]


def injection(calls: list[str], index: int, what: str, is_lasting: bool) -> list[str]:
    """strace's words for a fault; it counts the calls of each name by themselves."""
    if what == "kill":
        return [f"inject={calls[index]}:signal=KILL:when={calls[: index + 1].count(calls[index])}"]
    if not is_lasting:
        return [f"inject={calls[index]}:error={what}:when={calls[: index + 1].count(calls[index])}"]
    so_far = Counter(calls[:index])
    names = {name for name in (*calls, *EXTRA_CALLS) if not NOT_OF_THE_DISK.fullmatch(name)}
    return [f"inject=?{name}:error={what}:when={so_far[name] + 1}+" for name in sorted(names)]


def check_fault(folder: Path, scenario: str, fault: list[str]) -> str:
    """Assert what holds after a save with any fault; return how it ended."""
    store, new = prepare(folder / "run", scenario)
    reader, warnings = CheckpointStore(store.folder), []
    checkpoints.warn = warnings.append
    before = load(reader)
    arguments = [word for each in fault for word in ("-e", each)]
    is_killed, told = save_in_child(store, new, arguments, folder / "log")
    found = load(reader)
    assert found in (before, describe(new)), found
    reader.cut_back(10)
    assert not store.folder.exists() or list(store.folder.glob(".*")) == []
    assert load(reader) == found
    damaged = [line for line in warnings if "trying another checkpoint" in line]
    assert len(damaged) == 0 or scenario == "mended", damaged
    store.save(new)
    assert load(reader) == describe(new)
    kinds = [kind for kind, _ in told if kind != "warning"]
    assert is_killed == (kinds == []) == ("KILL" in str(fault)), told
    assert kinds in ([], ["saved"], ["refused"]), told
    assert found == describe(new) or kinds != ["saved"], found
    for _, text in told:
        assert text == "" or (text.startswith("cannot ") and "\n" not in text), text
    return "killed" if is_killed else kinds[0]


def main() -> None:
    os.fsync = lambda descriptor: None  # what is only prepared need not last
    if not shutil.which("strace"):
        raise SystemExit("strace cannot be had: it is not installed")
    folder, scenario, every = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    endings = Counter([check_fault(folder, scenario, [])])
    calls = list_calls(folder / "log")
    for index, name in enumerate(calls):
        is_on_disk = not NOT_OF_THE_DISK.fullmatch(name)
        for number, (what, is_lasting) in enumerate(FAULTS):
            is_chosen = (index + number) % every == 0 or name.startswith("rename")
            if is_chosen and (what == "kill" or is_on_disk):
                fault = injection(calls, index, what, is_lasting)
                print(f"call {index}: {fault}", file=sys.stderr)  # the last one if it fails
                endings[check_fault(folder, scenario, fault)] += 1
    print(json.dumps({"calls": len(calls), **endings}))


if __name__ == "__main__":
    main()
