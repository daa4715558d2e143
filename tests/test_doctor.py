"""`pixelpong doctor`: problems are found, each is one line, and no check crashes.

Each condition is the real one: a disk without room, a missing package, flipped bits.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from pixelpong.env import native
from pixelpong.env.native import NotCoveredError
from pixelpong.env.rom import rom_path
from pixelpong.faces import doctor
from pixelpong.faces.doctor import FAILURE, LEVELS, NOTE, OK, WARNING, machine, of_run
from pixelpong.loop import train

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/howto/doctor.md").read_text("utf-8")


@pytest.fixture
def examine(call):
    """The checks that ``pixelpong doctor --json`` makes, in lists by name."""

    def go(*words: object) -> dict[str, list[doctor.Check]]:
        code, out, err = call("doctor", *words, "--json")
        report = json.loads(out)
        assert (code, err) == (0 if report["is_sound"] else 1, "")
        assert sum(report["counts"].values()) == len(report["checks"])
        checks: dict[str, list[doctor.Check]] = {}
        for check in report["checks"]:
            checks.setdefault(check["name"], []).append(doctor.Check(**check))
        return checks

    return go


def sees(found, level: str, *words: str) -> bool:
    """Whether the one check there is has this level, and its text these words on one line."""
    (check,) = found if isinstance(found, list) else [found]
    assert check.level == level, check
    if level in (WARNING, FAILURE):
        assert re.fullmatch(r"expected .+, got .+; .+", check.text), check.text
    assert "\n" not in check.text
    return all(word in check.text for word in words)


# --- the machine and the game -----------------------------------------------------------------


def test_nothing_is_broken_here_and_nothing_is_left_behind(report, tmp_path):
    told = report("doctor")
    assert (told["is_sound"], told["schema"]) == (True, doctor.SCHEMA)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("damage", ["flipped", "short", "none"])
def test_another_rom_is_a_failure(examine, monkeypatch, tmp_path, damage):
    content = bytearray(rom_path().read_bytes())
    content[100] ^= 1
    if damage != "none":
        (tmp_path / "pong.bin").write_bytes(content if damage == "flipped" else content[:1000])
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    assert sees(examine()["rom"], FAILURE, "unset ALE_ROMS_DIR")


def test_an_emulator_that_cannot_play_or_be_kept_is_a_warning(monkeypatch):
    assert sees(machine.check_emulator(), OK, "native")
    with monkeypatch.context() as patch:
        patch.setattr(native, "load_game", lambda: SimpleNamespace(was_kept=False))
        patch.setattr("pixelpong.atari.native.cache_folder", lambda: None)
        assert sees(machine.check_emulator(), WARNING, "PIXELPONG_CACHE_DIR")

    def refuse():
        raise NotCoveredError("no LLVM here")

    monkeypatch.setattr(native, "load_game", refuse)
    assert sees(machine.check_emulator(), WARNING, "no LLVM here", "ALE plays instead")


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(machine.EXTRAS) <= set(project["optional-dependencies"])
    core = {re.match(r"[\w-]+", each)[0] for each in project["dependencies"]}
    assert core == set(machine.CORE)


@pytest.mark.slow
def test_missing_packages_come_with_the_command_that_installs_them(tmp_path):
    """In a process of its own, in which they cannot be imported."""
    hidden = "import sys\nfor name in ('ray', 'matplotlib', 'llvmlite'): sys.modules[name] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    done = subprocess.run(
        [sys.executable, "-m", "pixelpong", "doctor", "--json"], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    checks = {each["name"]: doctor.Check(**each) for each in json.loads(done.stdout)["checks"]}
    assert sees(checks["packages"], FAILURE, "pip install llvmlite")
    assert sees(checks["extras"], NOTE, "pip install 'pixelpong[ray,plot]'")
    assert sees(checks["rom"], OK)
    assert sees(checks["emulator"], FAILURE, "llvmlite")


@pytest.mark.parametrize(
    ("files", "quota", "left"),
    [
        ({"cpu.max": "150000 100000", "memory.max": "900", "memory.current": "400"}, 1.5, 500),
        ({"cpu.max": "max 100000", "memory.max": "max", "memory.current": "4"}, None, None),
        ({"cpu.max": "nonsense", "memory.max": "", "memory.current": "-"}, None, None),
        ({}, None, None),
        (  # the first version
            {
                "cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "100000",
                "memory/a/memory.limit_in_bytes": "1000", "memory/a/memory.usage_in_bytes": "1",
            },
            0.5, 999,
        ),
    ],
)  # fmt: skip
def test_limits_of_a_control_group_are_found_at_any_height(tmp_path, files, quota, left):
    is_first = any("/" in name for name in files)
    groups = "4:cpu,cpuacct:/a/b\n3:memory:/a/b\n" if is_first else "0::/a/b\n"
    contents = {"proc/self/cgroup": groups, "sys/fs/cgroup/a/b/x": ""}
    contents |= {f"sys/fs/cgroup/{'' if is_first else 'a/'}{k}": v for k, v in files.items()}
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content + "\n")
    assert machine.read_core_limit(tmp_path) == quota
    assert machine.read_memory_left(tmp_path) == left


def test_a_training_takes_no_more_cores_than_its_group_allows(monkeypatch):
    """A container of two cores on a machine of sixty-four would else start sixty-four workers."""
    from pixelpong import machine as cores

    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(64)))
    for limit, wanted in ((None, 64), (2.0, 2), (1.5, 1), (0.5, 1), (128.0, 64)):
        monkeypatch.setattr(cores, "read_core_limit", lambda limit=limit: limit)
        assert cores.count_cores() == wanted


def test_busy_cores_are_a_note_and_too_little_memory_is_a_warning(monkeypatch):
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (99.0, 0.0, 0.0))
    assert sees(machine.check_cores(), NOTE, "a load of 99.0")
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert sees(machine.check_cores(), OK)
    monkeypatch.setattr(machine, "read_memory_left", lambda: 3 * 10**8)
    assert sees(machine.check_memory(), WARNING, "got 300 MB")
    monkeypatch.setattr(machine, "read_memory_left", lambda: 5 * 10**8)
    assert sees(machine.check_memory(), OK, "500 MB free")


@pytest.mark.parametrize(("size", "level"), [("200m", WARNING), ("600m", OK)])
def test_little_room_for_runs_is_found_on_a_real_disk(small_disk, size, level):
    assert sees(machine.check_folder("disk", small_disk(size) / "not" / "there" / "yet"), level)


def test_a_folder_that_cannot_be_written_to_is_a_failure(small_disk):
    disk = small_disk("600m")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert sees(machine.check_folder("disk", disk / "runs"), FAILURE, "Read-only file system")


# --- a run ------------------------------------------------------------------------------------


@pytest.fixture
def trained(make_run):
    run = make_run(updates=8, save_every=2)
    train(run)
    return run


def flip(path: Path, place: int = -20) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


def test_a_sound_run_is_sound(trained, examine):
    checks = examine(trained.path)
    of_it = ["run", "checkpoints", "lines", "run_disk", "run_machine", "health"]
    assert {check.level for name in of_it for check in checks[name]} == {OK}
    assert checks["checkpoints"][0].facts["sound"] == trained.checkpoints.updates()
    assert checks["lines"][0].facts["readable"]["metrics"] == 8
    assert checks["run"][0].facts["is_live"] is False
    with trained.lock():
        assert examine(trained.path)["run"][0].facts["is_live"] is True


def test_flipped_bits_are_found_and_what_is_left_is_said(trained, examine):
    *others, newest = trained.checkpoints.updates()
    flip(trained.checkpoints.path(newest) / "params.safetensors")
    found = examine(trained.path)["checkpoints"]
    assert sees(found, WARNING, f"got damaged ones of updates {newest}", f"update {others[-1]}")
    for update in others:
        flip(trained.checkpoints.path(update) / "state.json")
    found = examine(trained.path)["checkpoints"]
    assert sees(found, FAILURE, "got damaged ones of updates")
    shutil.rmtree(trained.checkpoints.folder)
    assert sees(examine(trained.path)["checkpoints"], FAILURE, "got none")


def test_damaged_lines_are_counted(trained, examine):
    flip(trained.metrics.path, place=1)
    assert sees(examine(trained.path)["lines"], WARNING, "1 damaged in metrics.jsonl")


def test_another_machine_is_a_note(trained, examine, monkeypatch):
    monkeypatch.setattr(of_run, "collect_versions", lambda: {**trained.versions, "numba": "9.9"})
    assert sees(examine(trained.path)["run_machine"], NOTE, "→ 9.9")


def test_a_run_that_has_not_begun_is_no_failure(make_run, examine):
    checks = examine(make_run().path)
    assert sees(checks["checkpoints"], NOTE)
    assert sees(checks["health"], NOTE, "Too early to tell")


def test_health_comes_with_advice(trained, examine):
    lines = list(trained.metrics.read())
    trained.metrics.path.unlink()
    for line in lines:
        trained.metrics.append(line | {"up_share": 0.999, "entropy": 0.001})
    found = {check.facts["title"]: check for check in examine(trained.path)["health"]}
    assert {"One action only", "Entropy gone"} <= set(found)
    assert found["Entropy gone"].level == WARNING
    assert "lower --learning-rate" in found["Entropy gone"].text


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"format": 99}', None])
def test_what_is_not_a_run_is_one_failure(tmp_path, content, examine):
    (tmp_path / "run").mkdir()
    if content is not None:
        (tmp_path / "run" / "config.json").write_bytes(content)
    assert sees(examine(tmp_path / "run")["run"], FAILURE, str(tmp_path / "run"))


# --- the report -------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_lines_keep_to_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = io.StringIO()
    text = "some words " * 40 + "and/a/path" * 20
    assert len(list(doctor.show([doctor.Check("a_check", NOTE, text)], stream))) == 1
    assert max(map(len, stream.getvalue().splitlines())) <= columns
    assert "".join(stream.getvalue().split()[2:]) == "".join(text.split())


def test_no_control_character_of_a_strange_run_reaches_the_terminal():
    stream = io.StringIO()
    check = doctor.Check("run", OK, "runs/\x1b[2J\x1b]0;mine\x07: preset fast")
    assert list(doctor.show([check], stream))
    assert "\x1b" not in stream.getvalue()
    assert "runs/?[2J?]0;mine?: preset fast" in " ".join(stream.getvalue().split())


def test_a_check_with_a_bug_is_a_failure_and_the_others_go_on(monkeypatch, examine):
    monkeypatch.setattr(machine, "check_memory", lambda: 1 / 0)
    checks = examine()
    assert sees(checks["memory"], FAILURE, "ZeroDivisionError")
    assert sees(checks["rom"], OK)


def test_the_page_names_every_check_field_level_and_finding(report, trained):
    told = report("doctor", trained.path)
    named = set(re.findall(r"`(\w+)`", PAGE))
    wanted = set(told) | set(told["checks"][0]) | set(LEVELS)
    wanted |= {check["name"] for check in told["checks"]}
    assert wanted <= named, wanted - named
    source = (ROOT / "src/pixelpong/agent/health.py").read_text("utf-8")
    titles = set(re.findall(r'WARNING, "([A-Z][a-z ]+)"', source))
    assert titles
    assert titles <= set(re.findall(r"^### (.*)$", PAGE, flags=re.M))
