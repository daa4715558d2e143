"""What README and quick start say is run; figures, tree and loop are where they stand."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
START = (ROOT / "docs/start.md").read_text("utf-8")
BLOCKS = re.findall(r"```bash\n(.*?)```", README + START, flags=re.S)
COMMANDS = [
    line.split("#")[0].strip()
    for block in BLOCKS
    for line in block.splitlines()
    if not line.startswith(("make", "pip", "source"))
]
SHORTER = {
    "pixelpong plot runs/fast-001": " --kind health",  # no episode is finished yet
    "pixelpong resume runs/fast-001": " --updates 2",
    "pixelpong verify": " --updates 1 --engines serial,threads",
    "pixelpong train --seed 1 --updates 100": " --updates 2",
    "pixelpong train --preset classic --batch-size 20": " --updates 1",
    "pixelpong record latest --overlay --out best.mp4": " --seconds 2",
    "pixelpong record runs/fast-001 --overlay --out best.mp4": " --seconds 2",
}
SERVING = ("pixelpong watch", "pixelpong play", "pixelpong dashboard")  # a page, until they end


def test_the_front_page_is_short_and_begins_with_a_command():
    assert len(README.split()) <= 1000
    assert README.splitlines().index("```bash") < 19


@pytest.mark.slow
@pytest.mark.timeout(800)
def test_every_command_works_in_the_order_it_is_shown(tmp_path):
    """In a folder where `make train` has been, here with a shorter training."""
    assert len(COMMANDS) >= 8
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in ["pixelpong train --updates 1", *COMMANDS]:
        if command.startswith(SERVING):
            look_at_the_page(command, tmp_path, environment)
            continue
        done = subprocess.run(
            command + SHORTER.get(command, ""), shell=True, cwd=tmp_path, env=environment,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
        words = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
        assert not words, command
    assert len(list((tmp_path / "runs").iterdir())) == 4


@pytest.mark.slow
def test_the_python_shown_runs_as_a_script(tmp_path):
    (block,) = re.findall(r"```python\n(import pixelpong.*?)```", START, flags=re.S)
    (tmp_path / "shown.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "shown.py"], cwd=tmp_path, capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def look_at_the_page(command, folder, environment):
    """The page is there, and Ctrl-C ends it without a word too many."""
    words = [*command.split(), "--no-open"]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            address = ""
            while not address:
                line = server.stderr.readline()
                assert line, (command, server.wait())
                address = "".join(re.findall(r"http://\S+?(?=[/#\s])", line)[:1])
            page = urllib.request.urlopen(address, timeout=20).read()
            assert b"<html" in page
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0, command


def test_the_loop_is_the_loop():
    concepts = (ROOT / "docs/concepts.md").read_text("utf-8")
    shown = re.search(r"```python\n(while True:.*?)```", concepts, flags=re.S)[1]
    source = (ROOT / "src/pixelpong/loop.py").read_text("utf-8")
    assert textwrap.indent(shown, 16 * " ") in source


def read_record(name):
    return json.loads((ROOT / "benchmarks" / name).read_text("utf-8"))


def test_the_times_to_win_are_the_recorded_ones():
    report, page = read_record("solve.json"), (ROOT / "docs/reproduce.md").read_text("utf-8")
    seconds = sorted(seed["seconds"] for seed in report["seeds"])
    assert report["summary"]["won"] == len(seconds) == 20
    middle, steps = report["summary"]["seconds"]["median"], report["summary"]["steps"]["median"]
    shown = f"{middle:.0f} seconds in the median of twenty seeds"
    assert f"{shown} ({seconds[0]:.0f} to {seconds[-1]:.0f})" in " ".join(README.split())
    assert f"| **{middle:.0f} s** | {steps / 1e6:.2f} M |" in README
    for seed in report["seeds"]:
        row = f"| seed {seed['seed']} | yes | {seed['steps']:,} | {seed['seconds']:.0f} | "
        row += f"{seed['ale_bound_seconds']:.0f} | {seed['greedy']['mean_return']:+.2f} |"
        assert row in page
    assert report["commit"] in page


def test_rates_and_batches_are_the_recorded_ones():
    report, page = read_record("throughput.json"), (ROOT / "docs/algorithms.md").read_text("utf-8")
    for name, rate in report["steps_per_second"].items():
        ratio = f"{report['ratios'][name]:.2f}" if name in report["ratios"] else "1"
        assert f" | {rate:,.0f} | {ratio} |\n" in page, name
    batches = {row["episodes"]: row["seconds"] for row in read_record("batches.json")["batches"]}
    page = (ROOT / "docs/scaling.md").read_text("utf-8")
    assert all(f"| {size:,} | {each:.2f} s |" in page for size, each in batches.items())
    chapter = (ROOT / "docs/tutorial/09_ray.md").read_text("utf-8")
    (shown,) = re.findall(r"^recorded = (\{.*\})$", chapter, flags=re.M)
    assert eval(shown) == {size: round(batches[size], 2) for size in (1, 10, 60, 300)}
