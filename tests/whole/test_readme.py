"""What README and quick start say is run; figures, tree and loop are where they stand."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import textwrap
from pathlib import Path

import pytest

from pixelpong.faces.page import server
from pixelpong.faces.page.library import Library

ROOT = Path(__file__).parents[2]
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
    "pixelpong resume runs/fast-001": "--updates 2",
    "pixelpong evaluate runs/fast-001 --episodes 20": "--episodes 2",
    "pixelpong plot runs/fast-001": "--kind health",  # no episode is finished yet
    "pixelpong verify": "--updates 1 --presets classic --engines serial,threads",
    "pixelpong train --seed 1 --updates 100": "--updates 1",
    "pixelpong train --preset classic --batch-size 20": "--updates 1 --max-frames 300",
    "pixelpong train --config mine.toml --updates 2": "--updates 1 --max-frames 300",
    "pixelpong record latest --overlay --out best.mp4": "--seconds 1",
    "pixelpong record runs/fast-001 --overlay --out best.mp4": "--seconds 1",
}


def test_the_front_page_is_short_and_begins_with_a_command():
    assert len(README.split()) <= 1000
    assert README.splitlines().index("```bash") < 19


@pytest.mark.slow
def test_every_command_works_in_the_order_it_is_shown(call, tmp_path, monkeypatch):
    """In a folder where `make train` has been, here with a shorter training."""
    opened = []

    def serve(runs_dir, host, port, opens_browser, view="", agent=(None, "best"), **how):
        library = Library(runs_dir, agent[0])
        opened.append((view, library.load_agent(library.id_of(agent[0]), agent[1]).protocol))

    monkeypatch.setattr(server, "serve", serve)
    for command in ["pixelpong train --updates 1", *dict.fromkeys(COMMANDS)]:
        if command.startswith("echo"):
            subprocess.run(command, shell=True, cwd=tmp_path, check=True)
            continue
        code, _, said = call(*shlex.split(f"{command} {SHORTER.get(command, '')}")[1:])
        words = [line for line in said.splitlines() if not line.startswith("warning: ")]
        assert (code, words) == (0, []), command
    assert [view for view, _ in opened] == ["play", "play", "", "watch", "play"]
    assert len(list((tmp_path / "runs").iterdir())) == 4


@pytest.mark.slow
def test_the_python_shown_runs(tmp_path, monkeypatch):
    (block,) = re.findall(r"```python\n(import pixelpong.*?)```", START, flags=re.S)
    assert "total_timesteps=200_000" in block
    monkeypatch.chdir(tmp_path)
    shown = {}
    exec(block.replace("200_000", "80_000"), shown)
    assert (shown["observation"].shape, shown["reward"]) == ((210, 160, 3), 0.0)


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
        row = f"| {seed['seed']} | {seed['attempts']} | {seed['steps']:,} | {seed['frames']:,} | "
        row += f"{seed['seconds']:.0f} | {seed['greedy']['mean_return']:+.2f} | "
        row += f"{seed['fresh']['mean_return']:+.2f} |"
        assert row in page
    fresh = report["summary"]["fresh"]
    assert f"median is {fresh['median']:+.2f}, the lowest {fresh['lowest']:+.2f}" in page
    assert report["commit"] in page
    assert fresh["commit"] in page


def test_rates_and_batches_are_the_recorded_ones():
    report, page = read_record("throughput.json"), (ROOT / "docs/scaling.md").read_text("utf-8")
    for name, rate in report["steps_per_second"].items():
        ratio = f"{report['ratios'][name]:.2f}" if name in report["ratios"] else "1"
        assert f" | {rate:,.0f} | {ratio} |\n" in page, name
    batches = {row["episodes"]: row["seconds"] for row in read_record("batches.json")["batches"]}
    assert all(f"| {size:,} | {each:.2f} s |" in page for size, each in batches.items())
    chapter = (ROOT / "docs/tutorial/09_ray.md").read_text("utf-8")
    (shown,) = re.findall(r"^recorded = (\{.*\})$", chapter, flags=re.M)
    assert eval(shown) == {size: round(batches[size], 2) for size in (1, 10, 60, 300)}
