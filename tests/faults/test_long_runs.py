"""Long runs hold no more at the end than at the beginning: memory, descriptors, threads.

The check is `growth.find_growth`. It is tried on curves that are made up, on a short real training
in which a leak is planted, and then on half an hour of training and ten minutes of the page
(`make soak ARGS="-k long_runs -s"`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import growth
import numpy as np
import pytest
from conftest import patience, wait_until
from growth import BLOCKS, LIMIT, Sample, find_growth, memory_trend
from web_client import connect, get, head, make_trained, metrics_line

from pixelpong.faces.page.view import id_of
from pixelpong.run.directory import RunDirectory

PIXELPONG = [sys.executable, "-m", "pixelpong"]

WARM_UP, MEASURED = 300, 1500
"""Seconds of a long training: until caches and pools have their size, and those that count."""

PAGE_CYCLES, CROWD_SECONDS, REST_SECONDS = 30, 17.0, 3.0
"""Of the page: a crowd comes, stays for a while, leaves; then a sample is taken."""

VIEWERS = 10


def curve(rng: np.random.Generator, slope: float, noise: float = 0.3) -> list[Sample]:
    """Twelve minutes, a sample every two seconds: noise that wanders, and a slope in MB/h."""
    steps = rng.normal(0, noise, 360)
    wandering = [0.0]
    for step in steps:  # each half of the one before, so that neighbours are alike
        wandering.append(0.5 * wandering[-1] + step)
    return [
        Sample(2.0 * number, 300 + slope * number / 1800 + each, 40, 9, 4, 0)
        for number, each in enumerate(wandering[1:])
    ]


# --- the check itself -------------------------------------------------------------------------


def shaken(samples: list[Sample], extra) -> list[Sample]:
    """The same samples with `extra(number)` megabytes more."""
    return [
        dataclasses.replace(each, megabytes=each.megabytes + extra(number))
        for number, each in enumerate(samples)
    ]


@pytest.mark.slow
def test_the_check_finds_leaks_under_noise_and_raises_few_false_alarms():
    """The limit is 1 MB an hour; the interval of the slope holds the true one."""
    alarms = dict.fromkeys((0.0, LIMIT, 5.0, 5000.0), 0)
    inside = 0
    for seed in range(200):
        for slope in alarms:
            samples = curve(np.random.default_rng(seed), slope)
            alarms[slope] += bool(find_growth(samples))
            trend = memory_trend(samples)
            inside += trend.low <= slope <= trend.high
    assert alarms[0.0] == 0
    assert alarms[LIMIT] <= 6
    assert min(alarms[5.0], alarms[5000.0]) >= 190
    assert inside >= 4 * 190


@pytest.mark.parametrize(
    ("extra", "noise", "leak"),
    [
        (lambda number: number % 7 + (40 if 100 < number < 130 else 0), 0.3, 20.0),
        *((lambda number: -30.0 * (number > 200), noise, 10.0) for noise in (0.0, 0.1)),
        *((lambda number: 15.0 * (number > 200), noise, 10.0) for noise in (0.0, 0.1)),
    ],
)
def test_peaks_and_single_steps_neither_hide_a_leak_nor_look_like_one(extra, noise, leak):
    """A collector's saw teeth, a busy minute, a heap that once grows or shrinks by some pages."""
    for slope in (0.0, leak):
        samples = shaken(curve(np.random.default_rng(5), slope, noise), extra)
        assert bool(find_growth(samples)) == bool(slope), slope


def test_many_steps_are_a_leak():
    samples = shaken(curve(np.random.default_rng(5), 0.0), lambda number: 15.0 * (number // 90))
    assert "from 300" in "".join(find_growth(samples))


@pytest.mark.parametrize("name", growth.COUNTED)
def test_one_descriptor_more_is_found_and_one_for_a_moment_is_ignored(name):
    samples = curve(np.random.default_rng(0), 0.0)

    def with_more(more) -> list[Sample]:
        return [
            dataclasses.replace(each, **{name: getattr(each, name) + more(number)})
            for number, each in enumerate(samples)
        ]

    assert find_growth(with_more(lambda number: number % 3)) == []
    (line,) = find_growth(with_more(lambda number: number // 180))
    assert line.startswith(name)


# --- leaks that are planted -------------------------------------------------------------------


@contextlib.contextmanager
def started(command: list[str], **options) -> Iterator[subprocess.Popen]:
    """A process, ended with all that are below it."""
    with subprocess.Popen(growth.with_own_shared_memory(command), **options) as process:
        try:
            yield process
        finally:
            tree = growth.find_tree(process.pid)
            process.kill()
    assert wait_until(lambda: not any(is_alive(pid) for pid in tree), 5)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.soak
def test_a_leak_that_is_planted_is_found_wherever_it_is(tmp_path):
    """In a real training: first there is none, then one after the other leaks."""
    orders = tmp_path / "orders"
    orders.write_text("")
    run, script = tmp_path / "run", Path(__file__).parent / "leaky.py"
    found = {}
    with started([sys.executable, str(script), str(run), str(orders)]) as process:
        assert wait_until(lambda: count_lines(run / "metrics.jsonl") > 100, 60)
        for order in ("", "worker", "driver", "descriptors", "threads", "shared_files"):
            orders.write_text(order)
            found[order] = find_growth(growth.sample(process.pid, 2 * BLOCKS, 0.03 * patience()))
    for left in Path("/dev/shm").glob("pixelpong-leak-*"):  # where it could not have its own
        left.unlink()
    assert found.pop("") == []
    for order in ("worker", "driver"):
        assert any(line.startswith("memory grows") for line in found.pop(order)), order
    for order, lines in found.items():
        assert any(line.startswith(order) for line in lines), (order, lines)


# --- half an hour of training -----------------------------------------------------------------


def report(what: str, samples: list[Sample], **more) -> None:
    """Print the figures of a long run as one line of JSON."""
    trend = memory_trend(samples)
    print(
        json.dumps(
            {
                "what": what,
                "samples": len(samples),
                "seconds": round(samples[-1].seconds - samples[0].seconds),
                "megabytes": [round(samples[0].megabytes, 1), round(samples[-1].megabytes, 1)],
                "slope_mb_per_hour": [round(each, 3) for each in dataclasses.astuple(trend)],
                "curve_megabytes": growth.medians([each.megabytes for each in samples])
                .round(2)
                .tolist(),
                **{
                    name: [min(values), max(values)]
                    for name in growth.COUNTED
                    if (values := [getattr(each, name) for each in samples])
                },
                **more,
            }
        )
    )


def with_leak(samples: list[Sample], slope: float) -> list[Sample]:
    """The same curve, and a leak on top of it."""
    return [
        dataclasses.replace(each, megabytes=each.megabytes + slope * each.seconds / 3600)
        for each in samples
    ]


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("preset", ["fast", "classic"])
def test_long_runs_of_training_hold_no_more_at_the_end(preset, tmp_path):
    run = tmp_path / "run"
    words = ["train", "--preset", preset, "--updates", "1000000", "--run", str(run)]
    if preset == "classic":  # else its episodes, and with them its arrays, grow for hours
        words += ["--learning-rate", "1e-12"]
    with started([*PIXELPONG, *words], stdout=subprocess.DEVNULL) as process:
        samples = growth.sample(process.pid, (WARM_UP + MEASURED) // 2, 2.0)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    settled = [each for each in samples if each.seconds >= WARM_UP]
    last = list(RunDirectory.open(run).metrics.read())[-1]
    report(f"training {preset}", settled, updates=last["update"], steps=last["steps"])
    assert find_growth(settled) == []
    assert find_growth(with_leak(settled, 10.0)), "10 MB/h would not have been seen"


# --- the page ---------------------------------------------------------------------------------


def visit(port: int, run: RunDirectory, rng: random.Random, until: float) -> int:
    """Look around on the page, leave in the middle of something, come again; how often."""
    own, path, visits = f"127.0.0.1:{port}", f"/api/runs/{id_of(run.path)}", 0
    while time.monotonic() < until:
        visits += 1
        for target in ("/", "/static/app.js", "/api/runs", path, f"{path}/metrics"):
            assert get(port, target).status == 200, target
        assert get(port, f"{path}/weights/{max(run.checkpoints.updates())}").status == 200
        what = rng.choice(["events", "game", "half", "reel"])
        with connect(port) as made:
            made.settimeout(0.5)
            if what == "events":
                made.sendall(head("GET", f"{path}/events", own))
            elif what == "reel":
                made.sendall(head("GET", f"{path}/reels/agent/0", own))
            elif what == "half":
                made.sendall(head("GET", "/", own)[: rng.randrange(1, 30)])
            if what != "game":
                read_for_a_while(made, rng.uniform(0.2, 3.0))
                continue
        play_for_a_while(port, rng.uniform(0.2, 3.0))
    return visits


def read_for_a_while(made: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        while time.monotonic() < end and made.recv(65536):
            pass


def play_for_a_while(port: int, seconds: float) -> None:
    """The package's agent, watched or played against; there are few seats."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect as join

    own, end = f"127.0.0.1:{port}", time.monotonic() + seconds
    query = "run=package&agent=0&mode=watch"
    origin = f"http://{own}"
    with contextlib.suppress(ConnectionClosed, TimeoutError):
        with join(f"ws://{own}/game?{query}", origin=origin, proxy=None) as game:
            while time.monotonic() < end:
                game.recv(2)


def crowd(port: int, run: RunDirectory, seed: int) -> int:
    """Let so many look at the page for a while, until all are gone; how many visits."""
    until, visits, failed = time.monotonic() + CROWD_SECONDS, [], []

    def work(number: int) -> None:
        try:
            visits.append(visit(port, run, random.Random(f"{seed} {number}"), until))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(VIEWERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, (seed, failed)
    return sum(visits)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_long_runs_of_the_page_hold_no_more_when_everybody_has_gone(tmp_path):
    """Viewers come and go; a run they look at gets a line now and then, as a live one does."""
    run = make_trained(tmp_path / "runs" / "toy")
    last = max(line["update"] for line in run.metrics.read())
    words = ["dashboard", str(run.path.parent), "--no-open", "--port", "0"]
    samples, visits, begin = [], 0, time.monotonic()
    with started([*PIXELPONG, *words], stderr=subprocess.PIPE, text=True) as process:
        port = int(re.search(r":(\d+)/", process.stderr.readline())[1])
        for number in range(PAGE_CYCLES + 4):
            run.metrics.append(metrics_line(last + number + 1))
            visits += crowd(port, run, number)
            time.sleep(REST_SECONDS)
            samples.append(growth.take_sample(process.pid, time.monotonic() - begin))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    settled = samples[4:]
    report("page", settled, visits=visits)
    assert find_growth(settled) == []
    assert find_growth(with_leak(settled, 20.0)), "20 MB/h would not have been seen"
