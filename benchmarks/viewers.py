"""What many viewers of the page cost a training, and how long an update takes to reach them.

Trainings with and without viewers alternate, on the same cores. The server is the page's own, in a
process of its own; the viewers are in another, which yields to everything else: in real life they
are on other machines. When a line is there, they see by looking at the file fifty times a second.

    python benchmarks/viewers.py --rounds 5 --json
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pixelpong.errors import WorkerError, expected
from pixelpong.machine import collect_versions, describe_commit, describe_machine
from pixelpong.run.lines import LineFile

WARM_UP = 5
"""Updates at a training's start that are left out: processes start, kernels load."""

LOOK_SECONDS = 0.02

START_TIMEOUT = 60.0

_PIXELPONG = [sys.executable, "-m", "pixelpong"]


def measure_viewers(viewers: int, rounds: int, updates: int) -> dict[str, Any]:
    """Steps a second with and without viewers, and the delay of updates.

    Args:
        viewers: at once.
        rounds: trainings of each kind, in turn.
        updates: of each training, more than `WARM_UP`.

    Raises:
        WorkerError: the page or a training does not start.
    """
    rates: dict[str, list[float]] = {"alone": [], "watched": []}
    delays: list[float] = []
    shares: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for kind in ("alone", "watched") if number % 2 == 0 else ("watched", "alone"):
                run = Path(folder) / f"{kind}-{number}"
                with _watched(run, viewers if kind == "watched" else 0) as seen:
                    _train(run, updates)
                rates[kind].append(_rate(run))
                delays += seen.get("delays", [])
                shares += seen.get("share", [])
    ratios = [b / a for a, b in zip(rates["alone"], rates["watched"], strict=True)]
    delays.sort()
    return {
        "viewers": viewers,
        "rounds": rounds,
        "updates": updates,
        "steps_per_second": rates,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "updates_received": len(delays),
        "updates_expected": viewers * rounds * updates,
        "delay_median_seconds": delays[len(delays) // 2] if delays else None,
        "delay_p99_seconds": delays[int(0.99 * len(delays))] if delays else None,
        "server_core_share": statistics.median(shares) if shares else None,
        "commit": describe_commit(),
        "versions": collect_versions(),
        "machine": describe_machine(),
    }


def _train(run: Path, updates: int) -> None:
    words = ["train", "--preset", "fast", "--updates", str(updates), "--run", str(run)]
    done = subprocess.run([*_PIXELPONG, *words], capture_output=True, text=True)
    if done.returncode:
        raise WorkerError(expected("a training", done.stderr.strip(), "see that it works alone"))


def _rate(run: Path) -> float:
    lines = list(LineFile(run / "metrics.jsonl").read())[WARM_UP:]
    return statistics.median(line["timing"]["steps_per_second"] for line in lines)


@contextlib.contextmanager
def _watched(run: Path, viewers: int) -> Iterator[dict[str, Any]]:
    """While the context lasts, so many viewers look at the run; afterwards, what they saw."""
    seen: dict[str, Any] = {}
    if not viewers:
        yield seen
        return
    with contextlib.ExitStack() as stack:
        words = ["dashboard", str(run.parent), "--no-open", "--port", "0"]
        server = stack.enter_context(_started([*_PIXELPONG, *words], subprocess.PIPE))
        assert server.stderr is not None
        found = re.search(r":(\d+)/", server.stderr.readline())
        if found is None:
            raise WorkerError(expected("the page", "no address", "see `pixelpong dashboard`"))
        before, since = _processor_seconds(server.pid), time.monotonic()
        crowd = stack.enter_context(
            _started([sys.executable, __file__, "--crowd", found[1], str(run), str(viewers)], None)
        )
        yield seen
        seen["share"] = [(_processor_seconds(server.pid) - before) / (time.monotonic() - since)]
        out, _ = crowd.communicate("end\n", timeout=START_TIMEOUT)
        seen["delays"] = json.loads(out)


@contextlib.contextmanager
def _started(command: list[str], stderr: int | None) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- the viewers' process ---------------------------------------------------------------------


async def _watch(port: int, run: Path, viewers: int) -> list[float]:
    """Watch until told on stdin to end; the delay of each update at each viewer."""
    run_id = await asyncio.to_thread(_find_id, port, run.name)
    written: dict[int, float] = {}
    delays: list[float] = []
    tasks = [asyncio.create_task(_view(port, run_id, written, delays)) for _ in range(viewers)]
    tasks.append(asyncio.create_task(_note_lines(run / "metrics.jsonl", written)))
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.sleep(1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return delays


def _find_id(port: int, name: str) -> str:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/runs", timeout=20) as answer:
            for each in json.load(answer)["runs"]:
                if each["name"] == name and not each["problem"]:
                    return str(each["id"])
        time.sleep(0.1)
    raise SystemExit("the run did not appear")


async def _view(port: int, run_id: str, written: dict[int, float], delays: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    head = f"GET /api/runs/{run_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    writer.write(head.encode())
    while line := await reader.readline():
        if line.startswith(b"id: "):
            now, update = time.monotonic(), int(line[4:])
            if update in written:
                delays.append(now - written[update])


async def _note_lines(path: Path, written: dict[int, float]) -> None:
    """When each line was there."""
    count, end = 0, 0
    while True:
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(end)
            new = file.read()
            end += len(new)
            for _ in range(new.count(b"\n")):
                count += 1
                written[count] = time.monotonic()
        await asyncio.sleep(LOOK_SECONDS)


# --- the command ------------------------------------------------------------------------------


def describe(report: dict[str, Any]) -> str:
    """The ratio of training with viewers to training without, and the delay."""
    low, high = min(report["ratios"]), max(report["ratios"])
    return (
        f"training with {report['viewers']} viewers ÷ without: {report['ratio']:.3f} "
        f"({low:.3f} to {high:.3f}, {report['rounds']} rounds)\n"
        f"an update reaches a viewer after {report['delay_median_seconds']:.2f} s (median), "
        f"{report['delay_p99_seconds']:.2f} s (99 of 100); {report['updates_received']:,} of "
        f"{report['updates_expected']:,} seen\n"
        f"the server takes {report['server_core_share']:.1%} of a core"
    )


def main() -> None:
    """Measure and report; with --crowd, be the viewers' process."""
    if sys.argv[1:2] == ["--crowd"]:
        os.nice(19)
        port, run, viewers = sys.argv[2:]
        print(json.dumps(asyncio.run(_watch(int(port), Path(run), int(viewers)))))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = measure_viewers(options.viewers, options.rounds, options.updates)
    print(json.dumps(report, indent=1) if options.json else describe(report))


if __name__ == "__main__":
    main()
