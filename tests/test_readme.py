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
    "pixelpong verify": " --updates 1 --engines serial,threads",
    "pixelpong train --seed 1 --updates 100": " --updates 2",
    "pixelpong train --preset classic --batch-size 20": " --updates 1",
    "pixelpong record latest --overlay --out best.mp4": " --seconds 2",
    "pixelpong record runs/fast-001 --overlay --out best.mp4": " --seconds 2",
}
SERVING = ("pixelpong watch", "pixelpong play", "pixelpong dashboard")
"""They serve a page until somebody ends them."""


def test_the_front_page_is_short_and_begins_with_a_command():
    assert len(README.split()) <= 1000
    assert README.splitlines().index("```bash") < 19


def test_the_front_page_promises_what_is_recorded():
    report = json.loads((ROOT / "benchmarks/solve.json").read_text())
    seconds = sorted(seed["seconds"] for seed in report["seeds"])
    assert report["summary"]["won"] == len(seconds) == 20
    middle, steps = report["summary"]["seconds"], report["summary"]["steps"]
    shown = f"{middle['median']:.0f} seconds in the median of twenty seeds"
    assert f"{shown} ({seconds[0]:.0f} to {seconds[-1]:.0f})" in " ".join(README.split())
    assert f"| **{middle['median']:.0f} s** | {steps['median'] / 1e6:.2f} M |" in README


def test_every_make_target_named_exists():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"(?:^|`)make (\w+)", "\n".join(BLOCKS) + README, flags=re.M)
    assert set(targets) == {"train", "test", "docs"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.M)


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


def test_the_tree_names_what_there_is():
    tree = README.split("src/pixelpong/ ")[1].split("```")[0]
    named = set(re.findall(r"[a-z_]+\.py|[a-z]+/", tree))
    package = ROOT / "src" / "pixelpong"
    present = {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    present |= {f"{path.name}/" for path in package.iterdir() if path.is_dir()}
    missing = present - named - {"__pycache__/", *QUIET}
    assert not missing, missing
    for name in named - {"docs/", "tests/", "examples/", "benchmarks/", "src/"}:
        assert list(package.rglob(name.rstrip("/"))), name


QUIET = {"errors.py", "machine.py", "seeding.py", "trajectory.py", "interrupts.py"}
"""Files that the tree leaves out, for brevity."""


def test_the_figures_are_the_recorded_ones():
    page = (ROOT / "docs/algorithms.md").read_text("utf-8")
    report = json.loads((ROOT / "benchmarks/throughput.json").read_text())
    rows = re.findall(r"^ +\| [^|]+ \| ([\d,]+) \| ([\d.]+) \|$", page, flags=re.M)
    wanted = [
        (f"{rate:,.0f}", f"{report['ratios'][name]:.2f}" if name in report["ratios"] else "1")
        for name, rate in report["steps_per_second"].items()
    ]
    assert rows == wanted


def test_the_times_to_win_are_the_recorded_ones():
    page = (ROOT / "docs/reproduce.md").read_text("utf-8")
    report = json.loads((ROOT / "benchmarks/solve.json").read_text())
    rows = re.findall(r"^\| seed (\d+) \| (.*) \|$", page, flags=re.M)
    wanted = [
        (
            str(seed["seed"]),
            f"{'yes' if seed['is_won'] else 'no'} | {seed['steps']:,} | {seed['seconds']:.0f} | "
            f"{seed['ale_bound_seconds']:.0f} | {seed['greedy']['mean_return']:+.2f}",
        )
        for seed in report["seeds"]
    ]
    assert rows == wanted
    assert report["commit"] in page


def test_the_batches_are_the_recorded_ones():
    report = json.loads((ROOT / "benchmarks/batches.json").read_text())
    seconds = {row["episodes"]: row["seconds"] for row in report["batches"]}
    page = (ROOT / "docs/scaling.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) s \| [\d.]+ s \| [^|]+ \|$", page, flags=re.M)
    assert rows == [(f"{size:,}", f"{each:.2f}") for size, each in seconds.items()]
    chapter = (ROOT / "docs/tutorial/09_ray.md").read_text("utf-8")
    (shown,) = re.findall(r"^recorded = (\{.*\})$", chapter, flags=re.M)
    assert eval(shown) == {size: round(seconds[size], 2) for size in (1, 10, 60, 300)}


def test_the_loop_is_the_loop():
    concepts = (ROOT / "docs/concepts.md").read_text("utf-8")
    shown = re.search(r"```python\n(while True:.*?)```", concepts, flags=re.S)[1]
    source = (ROOT / "src/pixelpong/loop.py").read_text("utf-8")
    assert textwrap.indent(shown, 16 * " ") in source


def test_the_package_carries_its_presets_and_its_type_marker():
    from importlib import resources

    import pixelpong

    names = {path.name for path in (resources.files(pixelpong) / "config" / "presets").iterdir()}
    assert {
        "fast.toml",
        "classic.toml",
        "karpathy.toml",
        "ray.toml",
        "numpy.toml",
        "half.toml",
    } <= names
    assert (resources.files(pixelpong) / "py.typed").is_file()
