"""Fixtures that every test may use."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import needs
import network_guard
import pytest
from disks import as_root
from toys import TOY, toy_config

from pixelpong.config import Config
from pixelpong.loop import train
from pixelpong.machine import count_cores
from pixelpong.run.directory import RunDirectory


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples on every run, so that a red test is red again; in the soak new ones.

    The first example of a kernel compiles it, which no deadline of milliseconds allows for.
    """
    is_soak = config.option.markexpr == "soak"
    hypothesis.settings.register_profile(
        "ours", deadline=None, derandomize=not is_soak, print_blob=is_soak
    )
    hypothesis.settings.load_profile("ours")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    # Ray gives its workers a low priority. Beside other tests they would hardly come to play.
    os.environ.setdefault("RAY_worker_niceness", "0")


MOST_WORKERS = 16  # each of which collects all tests, and may start a Ray


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """For ``-n auto``, as many as this machine or container has cores, but at least two."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # pytest-xdist reads it
    return min(max(count_cores(), 2), MOST_WORKERS)


# Without its own errands in the background, which would ask for the world.
CHROMIUM_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

GUARD = Path(network_guard.__file__).parent
# Some systems have a sitecustomize of their own already.
collect_ignore = ["support/guard/sitecustomize.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the reports tell which promises a test holds, also those from other processes."""
    for item in items:
        names = [mark.args[0] for mark in item.iter_markers("promise")]
        item.user_properties += [("promise", name) for name in names]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Name the promises whose tests were all skipped; fail the run where they must be tested."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    outcomes: defaultdict[str, set[str]] = defaultdict(set)
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for outcome in ("passed", "failed", "skipped") if reporter else ():
        for report in reporter.getreports(outcome):
            for key, name in getattr(report, "user_properties", ()):
                if key == "promise":
                    outcomes[name].add(outcome)
                    if outcome == "skipped":
                        reasons[name].append(report.longrepr[2].removeprefix("Skipped: "))
    untested = [name for name, found in outcomes.items() if found == {"skipped"}]
    if not untested:
        return
    must = needs.is_anything_needed()
    names = ", ".join(map(repr, untested))
    why = "; ".join(dict.fromkeys(itertools.chain(*(reasons[name] for name in untested))))
    reporter.ensure_newline()
    reporter.line(
        f"{'FAILED: no' if must else 'No'} test of these promises has run: {names}",
        red=must, yellow=not must,
    )  # fmt: skip
    reporter.line(f"because: {why}")
    if must:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def network_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where this process and all that tests start tell of what would have left this machine."""
    log = tmp_path_factory.mktemp("network") / "log"
    log.touch()
    network_guard.install()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(network_guard.LOG, str(log))
        patch.setenv("PYTHONPATH", str(GUARD), prepend=os.pathsep)
        yield log
    assert not log.read_text(), "after the last test"


@pytest.fixture(autouse=True)
def nothing_leaves_this_machine(network_log: Path) -> Iterator[None]:
    """Fail a test in which anything reached, or asked, beyond this machine."""
    yield
    if told := network_log.read_text():
        network_log.write_text("")
        pytest.fail(f"expected nothing to leave this machine, got {told}")


@pytest.fixture
def run_tests(network_log: Path, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run tests in a pytest of their own, with this conftest: exit code, and all that it says.

    Nothing is needed there but what `variables` of the environment say. `within` is a command that
    runs pytest, for example with fewer rights.
    """
    tests = Path(__file__).parent
    file = tmp_path / "test_within.py"
    words = [sys.executable, "-m", "pytest", "-c", tests.parent / "pyproject.toml", file]
    words += ["-q", "-p", "conftest", "-p", "no:cacheprovider"]
    paths = os.pathsep.join([str(tests), str(tests / "support"), os.environ["PYTHONPATH"]])

    def go(text: str, *more: str, within: Sequence[str] = (), **variables: str) -> tuple[int, str]:
        file.write_text(text)
        kept = {name: it for name, it in os.environ.items() if not name.startswith(needs.PREFIX)}
        environment = kept | {"PYTHONPATH": paths} | variables
        done = subprocess.run(
            [*within, *words, *more], env=environment, capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    return go


@pytest.fixture(scope="module")
def workers_find_tests() -> Iterator[None]:
    """Let processes that Ray starts import the stand-ins for tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(GUARD.parent), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def ray_cluster(workers_find_tests: None) -> Iterator[None]:
    """A Ray of two cores that the engines of a test file share: starting one takes seconds."""
    from pixelpong.engines.ray.connection import connected

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pixelpong.engines.ray.ROOM_SECONDS", math.inf)  # on a busy machine
        with connected(None, 2):
            yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium, headless.

    One for each file, not one for all: as long as it is there, this thread has an event loop that
    runs, and other tests want their own.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright for the browser")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        needs.lacks("BROWSER", "no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Open an address in the browser: ``open_page(url, motion)``; see `pages`."""
    from pages import watched_pages

    with watched_pages(browser) as open_at:
        yield open_at


@pytest.fixture
def toy() -> Config:
    """A training of a second: short games, three updates of three episodes, in this process."""
    return toy_config("classic")


@pytest.fixture(params=list(TOY))
def mode(request: pytest.FixtureRequest) -> str:
    """Both algorithms and any game, one after the other; `make_run` then makes a run of it."""
    return request.param


@pytest.fixture
def make_run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., RunDirectory]:
    """Make a run of the toy training, with options changed."""
    chosen = "mode" in request.fixturenames
    preset = request.getfixturevalue("mode") if chosen else "classic"

    def make(name: str = "run", preset: str = preset, **changes) -> RunDirectory:
        return RunDirectory.create(tmp_path / name, toy_config(preset, **changes))

    return make


@pytest.fixture
def call(tmp_path, monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """Run one command line in a folder of its own: exit code, stdout and stderr."""
    from pixelpong.faces.cli import main

    monkeypatch.chdir(tmp_path)

    def go(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return go


@pytest.fixture
def report(call) -> Callable[..., Any]:
    """What a command line that goes well reports with ``--json``."""

    def go(*words: object) -> Any:
        code, out, err = call(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    return go


@pytest.fixture(scope="session")
def toy_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trained run of each mode with evaluations and saved agents; not to be changed."""
    changes = {"updates": 12, "save_every": 2, "evaluate_every": 4}
    changes |= {"evaluate_episodes": 4, "hidden": 8, "num_envs": 2, "num_steps": 60}
    paths = {}
    for preset in TOY:
        paths[preset] = tmp_path_factory.mktemp("toys") / preset
        train(RunDirectory.create(paths[preset], toy_config(preset, **changes)))
    return paths


@pytest.fixture(scope="session")
def breakout_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run of Breakout with evaluations and saved agents; not to be changed."""
    path = tmp_path_factory.mktemp("toys") / "breakout"
    changes = {"updates": 12, "save_every": 2, "evaluate_every": 4, "evaluate_episodes": 4}
    changes |= {"hidden": 8, "num_envs": 2, "num_steps": 60, "max_frames": 1200}
    train(RunDirectory.create(path, toy_config("atari", **changes)))
    return path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Make a real file system of a few megabytes, which a test can fill."""
    mounts: list[Path] = []

    def make(size: str) -> Path:
        mount = tmp_path / f"disk-{len(mounts)}"
        mount.mkdir()
        try:
            as_root("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", mount)
        except (OSError, subprocess.CalledProcessError) as error:
            why = str(getattr(error, "stderr", error)).strip()
            needs.lacks("MOUNT", f"no file system can be mounted here: {why}")
        mounts.append(mount)
        return mount

    yield make
    for mount in mounts:
        as_root("umount", mount)
