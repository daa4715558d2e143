"""Reads strangers' run directories, each in a process with little memory; see `test_strangers.py`.

    python read_within_limits.py < requests > outcomes

A request is a line of JSON: the way of reading and the run's path. The child that reads may grow
by MAX_BYTES of address space and no more, and is killed after a while.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

from pixelpong.agent.file import decode_agent, load_milestone
from pixelpong.errors import PixelpongError
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

MAX_BYTES = 256 << 20
MAX_SECONDS = 30  # of wall time, for what hangs; processor time is reported


def read_lines(path: Path) -> None:
    for file in RunDirectory.open(path).line_files:
        list(file.read())


WAYS = {
    "checkpoint": lambda path: RunDirectory.open(path, [].append).checkpoints.load(2),
    "latest": lambda path: RunDirectory.open(path, [].append).checkpoints.load_latest(),
    "best": lambda path: RunDirectory.open(path, [].append).checkpoints.load_best(),
    "milestone": lambda path: load_milestone(RunDirectory.open(path, [].append).milestones, 2),
    "agent": lambda path: decode_agent(path.read_bytes(), "a file"),
    "run": lambda path: RunDirectory.open(path, [].append),
    "lines": read_lines,
    "resume": lambda path: train(RunDirectory.open(path, [].append)),
}


def read_in_child(way: str, path: Path) -> dict:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(MAX_SECONDS)
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MAX_BYTES, size + MAX_BYTES))
        try:
            begin = time.process_time()
            found = type(WAYS[way](path)).__name__
            outcome = {"read": found}
        except PixelpongError as error:
            outcome = {"refused": str(error)}
        except BaseException as error:
            outcome = {"bug": repr(error)[:500]}
        outcome["seconds"] = time.process_time() - begin
        os.write(theirs, json.dumps(outcome).encode()[:60_000])
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(told) if told else {"bug": f"ended with status {status}", "seconds": 0.0}


def main() -> None:
    for line in sys.stdin:
        way, path = json.loads(line)
        print(json.dumps(read_in_child(way, Path(path))), flush=True)


if __name__ == "__main__":
    main()
