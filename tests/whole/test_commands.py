"""Every command that a page or `--help` shows is run, in a folder such as its reader has.

A page is one test: its commands run one after the other, in the order in which they stand, and
each must end well without a word of error. They are shortened, never changed: see `SHORTER`. What
is not run here is in `ELSEWHERE`, with the reason.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from shown import DOCS, LOG, PAGES, ROOT, read_blocks, read_shown
from toys import stop_after, toy_config

import pixelpong.errors
from pixelpong import evaluation, verification
from pixelpong.config import OPTIONS, require_used
from pixelpong.config.presets import load_preset
from pixelpong.faces import cli, opening, plots
from pixelpong.faces.page import View
from pixelpong.faces.page.library import Library
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.sweeps import jobs
from pixelpong.sweeps.sweep import create_sweep, find_left

GRID = "--engine serial --seeds 0 --learning-rate 1e-3 --updates 1 --max-frames 300 TINY"

SHORTER = {
    "train --config": "--max-frames 300",
    "train --engine ray": "--preset classic --batch-size 2 --updates 1 --max-frames 300",
    "train --preset half": "--updates 3 --save-agent-every 1 --max-frames 300 TINY",
    "train": "--updates 1 --max-frames 300 TINY",
    "resume half": "--updates 4",
    "resume fast-001 --updates": "--updates 5",
    "resume runs/fast-001 --updates": "--updates 5",
    "resume runs/fast-001 --engine serial --updates": "--updates 6",
    "resume runs/fast-001 --learning-rate": "--updates 7",
    "sweep sweep-001": "--engine serial",
    "sweep runs/sweep-001": "--engine serial",
    "sweep grid.toml": GRID,
    "sweep rounds.toml": GRID,
    "sweep": "--engine serial --seeds 0-1 --updates 1 --max-frames 300 TINY",
    "evaluate": "--episodes 1",
    "tournament": "--games 1 --points 1 --workers 1",
    "record": "--seconds 0.2",
    "plot runs/sweep-001": "--kind health",  # it has won fewer than 1,000 points
    "verify --opponent": "--updates 1",
    "verify --game": "--updates 1",
    "verify": "--updates 1 --presets classic",
}
"""What is added to a command, by the words that it begins with. The first that fits counts."""

TINY = {
    "PPO": "--num-envs 4 --num-steps 40",
    "REINFORCE": "--batch-size 2",
}
"""What makes an update short, by algorithm."""

PLACEHOLDERS = {
    "RUN": "runs/fast-001", "NAME": "club",
    "half@240": "half@0", "half@480": "half@1", "half@733": "half@2",
}  # fmt: skip
"""What a reader writes in place of a word in capitals; updates of a short run for a long one's."""

ELSEWHERE = {
    "git clone": "needs the address of a public repository",
    "make ": "a target of the makefile: it is looked up",
    "pip install": "needs an index of packages",
    "source .venv": "changes the shell that it runs in",
    "python3 -m venv": "makes the environment that the tests run in",
    "ssh ": "a second machine",
    "ray start": "a second machine, or one that stays a cluster after the test",
    "ray job submit": "a cluster; test_ray_nodes has one",
    "jupyter ": "make docs runs each chapter; JupyterLab is no dependency",
    ".venv/bin/python -m pytest": "the tests themselves",
    "python examples/lose_a_node.py": "three Rays; test_ray_nodes loses a node",
    "python tests/support/two_players.py": "needs multi_agent_ale_py, which is not installed",
    "python examples/moved_picture.py": "forty games; test_examples plays short ones",
    "python examples/flavours_in_one_file.py": "trains for a minute; test_examples plays flavours",
    "python examples/ppo_torch.py": "PyTorch; make peers runs it",
    "sudo tests/platforms/install.sh": "installs packages from an index, minutes",
    "tests/platforms/install.sh": "installs packages from an index, minutes",
    "sudo tests/platforms/": "makes an emulated system, a quarter of an hour",
    "tests/platforms/": "makes an emulated system, minutes",
    "python docs/cells.py": "writes into the pages; test_docs holds what it writes",
    "python docs/notebooks.py": "test_notebooks writes them",
    "python tests/support/promises.py": "writes into a page; test_promises holds what it writes",
    "python benchmarks/any_game.py": "trains all games, an hour",
    "pixelpong record runs/any_game": "a run of the benchmark of all games",
    "pixelpong play runs/atari-001": "a run of another game; test_rival_page plays against one",
    "python benchmarks/pupils.py": "measures a class, a minute",
    "python benchmarks/batches.py": "measures on a Ray",
    "python benchmarks/first_use.py": "compiles all cartridges, minutes",
    "python benchmarks/games.py": "plays all cartridges, half an hour",
    "python benchmarks/ladder.py": "half an hour of trainings",
    "python benchmarks/outcomes.py": "trains presets to their ends, minutes",
    "python benchmarks/peers.py": "needs the extra [bench]",
    "python benchmarks/plateau.py": "minutes of games of a winning agent",
    "python benchmarks/same_bytes.py": "plays all cartridges on both, hours",
    "python benchmarks/throughput.py": "measures, a minute at least",
    "python benchmarks/vector.py": "needs the extra [bench]",
    "python benchmarks/target.py": "a minute of simulation",
}
"""Commands that no test here runs, by the words that they begin with, and why."""

NEEDS_RAY = ("--engine ray", "--engines serial,threads,ray", "--engines serial,ray")
NEEDS_CLUSTER = "--ray-address HEAD:6379"  # a second machine

SHOWING = [
    page
    for page in PAGES
    if page != LOG and DOCS / "zh" not in page.parents and page.name != "CHANGELOG.md"
]


def read_examples() -> list[str]:
    """The examples that `--help` prints."""
    return [f"pixelpong {each}" for each in cli.EXAMPLES]


def is_ours(line: str) -> bool:
    """Whether our command line reads it."""
    return line.startswith("pixelpong ")


def is_elsewhere(line: str) -> bool:
    """Whether no test here runs it."""
    return line.startswith(tuple(ELSEWHERE)) or NEEDS_CLUSTER in line


def check_command(line: str) -> None:
    """The words are a command line of ours, with options that exist and values in range."""
    words = shlex.split(line)[1:]
    if {"--help", "--version"} & set(words):
        with pytest.raises(SystemExit) as exit:
            cli.parse(words)
        assert not exit.value.code, line
        return
    function, _, options = cli.parse(words)
    given = {name: value for name, value in options.items() if name in OPTIONS}
    if function in (pixelpong.train, pixelpong.resume):
        config = load_preset(given.get("preset", "fast")).updated(given, line)
        if function is pixelpong.train:
            require_used(given, config, line)


def test_every_command_shown_is_one_as_it_stands(tmp_path, monkeypatch):
    """Also those that are not run, and as they are written: nothing is shortened."""
    monkeypatch.chdir(tmp_path)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    seen = set(read_examples())
    for page in [*SHOWING, ROOT / "CHANGELOG.md"]:
        seen |= set(read_shown(page))
    for line in seen:
        words = shlex.split(line)
        if words[0] == "git":  # its folder has our name
            continue
        if "pixelpong" in words:  # also of a job that a cluster runs
            check_command(shlex.join(words[words.index("pixelpong") :]))
        elif words[0] == "make":
            assert f"\n{words[1]}:" in makefile, line
        elif words[0] == "python":
            source = (ROOT / words[1]).read_text("utf-8")
            for flag in (word[2:] for word in words if word.startswith("--")):
                assert flag in source or flag.replace("-", "_") in source, line
    assert sum(map(is_ours, seen)) >= 70
    for beginning in ELSEWHERE:
        assert any(line.startswith(beginning) for line in seen), f"nothing shows {beginning}"
    for line in ("pixelpong trian", "pixelpong train --sed 1", "pixelpong train --seed -1"):
        with pytest.raises(pixelpong.errors.ConfigError):
            check_command(line)


def test_a_translation_shows_the_commands_of_its_original():
    for page in PAGES:
        if DOCS / "zh" in page.parents and page != DOCS / "zh/index.md":
            name = page.relative_to(DOCS / "zh")
            original = ROOT / name if name == Path("README.md") else DOCS / name
            typed = [{each for each in read_shown(it) if "--help" not in each}
                     for it in (page, original)]  # fmt: skip
            assert typed[0] <= typed[1], name


# --- they run ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which somebody has trained: two runs, and others in another folder; a sweep."""
    folder = tmp_path_factory.mktemp("reader")
    for seed, name in enumerate(("fast-001", "fast-002")):
        config = toy_config("fast", updates=4, seed=seed)
        run = RunDirectory.create(folder / "runs" / name, config)
        stop_after(run, 3)  # something is left to resume
    train(RunDirectory.create(folder / "old/runs/classic-001", toy_config("classic")))
    sweep = create_sweep(folder / "runs/sweep-001", [toy_config("classic", seed=s) for s in (0, 1)])
    for path in find_left(sweep):
        train(RunDirectory(path))
    (folder / "docs").mkdir()
    (folder / "mine.toml").write_text('preset = "classic"\nupdates = 1\n')
    return folder


@cache
def read_grid() -> str:
    """The grid of the page that tells of grids."""
    (grid,) = read_blocks(DOCS / "howto/compare.md", "toml")
    return grid


class InThisProcess(jobs.LocalTrainer):
    """Trains the runs of a sweep without a new process for each; `test_sweep` has the other."""

    def start(self, run: Path) -> None:
        """Train to the end."""
        pixelpong.resume(run, quiet=True, engine="serial")

    def find_error(self, process: None) -> str:
        """None."""
        return ""


@pytest.fixture
def run_shown(call, reader, tmp_path, monkeypatch) -> Iterator[list[str]]:
    """Run commands as they are shown, shortened; collects the pages that were opened."""
    opened: list[str] = []

    def serve(runs_dir, host, port, no_open, view=None):
        view = view or View("list")
        library = Library(runs_dir, view.path)
        library.load_agent(library.id_of(view.path), view.agent)
        opened.append(view.name)

    monkeypatch.setattr(opening, "_serve", serve)
    monkeypatch.setattr(jobs, "LocalTrainer", InThisProcess)
    # What takes seconds to draw, to play or to compare is so in tests of its own.
    for kind in ("sweep", "health"):
        monkeypatch.setitem(plots.KINDS, kind, lambda _: plots.new_figure(1, 1))
    monkeypatch.setattr(evaluation, "STAGES", evaluation.STAGES[:2])
    monkeypatch.setattr(verification, "STYLES", ("held",))
    monkeypatch.setattr(verification, "WORKER_COUNTS", (2,))
    shutil.copytree(reader, tmp_path, dirs_exist_ok=True)
    for name in ("grid.toml", "rounds.toml"):
        (tmp_path / name).write_text(read_grid())

    def go(lines: list[str]) -> list[str]:
        for line in lines:
            if not is_ours(line):  # a line of a shell
                subprocess.run(line, shell=True, cwd=tmp_path, check=True)
                continue
            words = shorten(line)
            code, _, said = call(*words[1:])
            wrong = [each for each in said.splitlines() if not each.startswith("warning: ")]
            assert (code, wrong) == (0, []), f"{line}  (run as {shlex.join(words)})"
        return opened

    return go


def shorten(line: str) -> list[str]:
    """The words of a command of ours, with what makes it short."""
    extra = next((SHORTER[key] for key in SHORTER if line.startswith(f"pixelpong {key}")), "")
    is_ppo = not any(f"--preset {name}" in line for name in ("classic", "karpathy", "ray", "numpy"))
    extra = extra.replace("TINY", TINY["PPO" if is_ppo else "REINFORCE"])
    return [PLACEHOLDERS.get(word, word) for word in shlex.split(f"{line} {extra}")]


def read_run_here(page: Path) -> list[str]:
    """The commands of a page that are run, those with a Ray apart."""
    lines = [each for each in read_shown(page) if not is_elsewhere(each) and "--help" not in each]
    return [each for each in lines if not any(word in each for word in NEEDS_RAY)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in SHOWING if read_run_here(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_command_of_a_page_works_in_the_order_it_is_shown(page, run_shown):
    lines = read_run_here(page)
    opened = run_shown(lines)
    serving = ("pixelpong dashboard", "pixelpong watch", "pixelpong play")
    assert len(opened) == sum(line.startswith(serving) for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name != "version"])
def test_every_example_of_a_help_works(name, run_shown):
    lines = [line for line in read_examples() if line.split()[1] == name]
    assert lines
    run_shown(lines)


@pytest.mark.ray
@pytest.mark.slow
def test_every_command_with_a_ray_of_its_own_works(run_shown, ray_cluster):
    shown = {line for page in SHOWING for line in read_shown(page) if is_ours(line)}
    lines = [each for each in shown if any(word in each for word in NEEDS_RAY)]
    lines = sorted(each for each in lines if NEEDS_CLUSTER not in each)
    assert len(lines) >= 3
    run_shown(lines)
