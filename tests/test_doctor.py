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
from pixelpong.faces.cli import main
from pixelpong.faces.doctor import FAILURE, LEVELS, NOTE, OK, WARNING, game, machine, of_run
from pixelpong.loop import train

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/howto/doctor.md").read_text("utf-8")


def call(folder: Path, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with variables changed."""
    return subprocess.run(
        [sys.executable, "-m", "pixelpong", "doctor", *words],
        cwd=folder, env={**os.environ, **changes}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def report_of(done: subprocess.CompletedProcess[str]) -> dict[str, dict]:
    """The checks by name, of a command that ended as it should."""
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["is_sound"] else 1), done.stderr
    return {check["name"]: check for check in report["checks"]}


def only(checks):
    (check,) = checks
    return check


def sees(check, level: str, *words: str) -> bool:
    """Whether a check has this level, and its text these words on one line."""
    assert check.level == level, check
    if level in (WARNING, FAILURE):
        assert re.fullmatch(r"expected .+, got .+; .+", check.text), check.text
    assert "\n" not in check.text
    return all(word in check.text for word in words)


# --- the machine and the game -----------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_broken_here_and_nothing_is_left_behind(tmp_path):
    done = call(tmp_path, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["is_sound"], report["schema"]) == (0, True, doctor.SCHEMA)
    assert sum(report["counts"].values()) == len(report["checks"])
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flipped", "short", "none"])
def test_another_rom_is_a_failure(tmp_path, damage):
    content = bytearray(rom_path().read_bytes())
    content[100] ^= 1
    if damage != "none":
        (tmp_path / "pong.bin").write_bytes(content if damage == "flipped" else content[:1000])
    checks = report_of(call(tmp_path, "--json", ALE_ROMS_DIR=str(tmp_path)))
    assert checks["rom"]["level"] == FAILURE
    assert "unset ALE_ROMS_DIR" in checks["rom"]["text"]


def test_an_emulator_that_cannot_play_or_be_kept_is_a_warning(monkeypatch):
    assert sees(only(game.check_emulator()), OK, "native")
    with monkeypatch.context() as patch:
        patch.setattr(game, "load_game", lambda: SimpleNamespace(was_kept=False))
        patch.setattr(game, "cache_folder", lambda: None)
        assert sees(only(game.check_emulator()), WARNING, "PIXELPONG_CACHE_DIR")

    def refuse():
        raise NotCoveredError("no LLVM here")

    monkeypatch.setattr(game, "load_game", refuse)
    assert sees(only(game.check_emulator()), WARNING, "no LLVM here", "ALE plays instead")
    assert native.load_game().was_kept is not None


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = set(project["optional-dependencies"])
    assert set(machine.EXTRAS) <= known
    core = {re.match(r"[\w-]+", each)[0] for each in project["dependencies"]}
    assert core == set(machine.CORE)


def hide(tmp_path: Path, *names: str) -> str:
    """A PYTHONPATH with which these modules cannot be found, as if they were not installed."""
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "sitecustomize.py").write_text(
        f"import sys\nfor name in {names!r}: sys.modules[name] = None\n"
    )
    return os.pathsep.join([str(tmp_path / "hiding"), str(ROOT / "src")])


@pytest.mark.slow
def test_missing_packages_come_with_the_command_that_installs_them(tmp_path):
    path = hide(tmp_path, "ray", "matplotlib", "threadpoolctl")
    checks = report_of(call(tmp_path, "--json", PYTHONPATH=path))
    assert checks["packages"]["level"] == FAILURE
    assert "pip install threadpoolctl" in checks["packages"]["text"]
    assert checks["extras"]["level"] == NOTE
    assert "pip install 'pixelpong[ray,plot]'" in checks["extras"]["text"]


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
    assert sees(only(machine.check_cores()), NOTE, "a load of 99.0")
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert sees(only(machine.check_cores()), OK)
    monkeypatch.setattr(machine, "read_memory_left", lambda: 3 * 10**8)
    assert sees(only(machine.check_memory()), WARNING, "got 300 MB")
    monkeypatch.setattr(machine, "read_memory_left", lambda: 5 * 10**8)
    assert sees(only(machine.check_memory()), OK, "500 MB free")


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


def look_at(run) -> dict[str, list]:
    checks: dict[str, list] = {}
    for check in of_run.check_run(run.path):
        checks.setdefault(check.name, []).append(check)
    return checks


def flip(path: Path, place: int = -20) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


def test_a_sound_run_is_sound(trained):
    checks = look_at(trained)
    assert {check.level for each in checks.values() for check in each} == {OK}
    assert only(checks["checkpoints"]).facts["sound"] == trained.checkpoints.updates()
    assert only(checks["lines"]).facts["readable"]["metrics"] == 8
    assert only(checks["run"]).facts["is_live"] is False
    with trained.lock():
        assert only(look_at(trained)["run"]).facts["is_live"] is True


def test_flipped_bits_are_found_and_what_is_left_is_said(trained):
    *others, newest = trained.checkpoints.updates()
    flip(trained.checkpoints.path(newest) / "params.safetensors")
    check = only(look_at(trained)["checkpoints"])
    assert sees(check, WARNING, f"got damaged ones of updates {newest}", f"update {others[-1]}")
    for update in others:
        flip(trained.checkpoints.path(update) / "state.json")
    assert sees(only(look_at(trained)["checkpoints"]), FAILURE, "got damaged ones of updates")
    shutil.rmtree(trained.checkpoints.folder)
    assert sees(only(look_at(trained)["checkpoints"]), FAILURE, "got none")


def test_damaged_lines_are_counted(trained):
    flip(trained.metrics.path, place=1)
    assert sees(only(look_at(trained)["lines"]), WARNING, "1 damaged in metrics.jsonl")


def test_another_machine_is_a_note(trained, monkeypatch):
    monkeypatch.setattr(of_run, "collect_versions", lambda: {**trained.versions, "numba": "9.9"})
    assert sees(only(look_at(trained)["run_machine"]), NOTE, "→ 9.9")


def test_a_run_that_has_not_begun_is_no_failure(make_run):
    checks = look_at(make_run())
    assert only(checks["checkpoints"]).level == NOTE
    assert "Too early to tell" in only(checks["health"]).text


def test_health_comes_with_advice(trained):
    lines = list(trained.metrics.read())
    trained.metrics.path.unlink()
    for line in lines:
        trained.metrics.append(line | {"up_share": 0.999, "entropy": 0.001})
    found = {check.facts["title"]: check for check in look_at(trained)["health"]}
    assert {"One action only", "Entropy gone"} <= set(found)
    assert found["Entropy gone"].level == WARNING
    assert "lower --learning-rate" in found["Entropy gone"].text


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"format": 99}', None])
def test_what_is_not_a_run_is_one_failure(tmp_path, content, capsys):
    (tmp_path / "run").mkdir()
    if content is not None:
        (tmp_path / "run" / "config.json").write_bytes(content)
    assert main(["doctor", str(tmp_path / "run"), "--json"]) == 1
    check = json.loads(capsys.readouterr().out)["checks"][-1]
    assert (check["name"], check["level"]) == ("run", FAILURE)
    assert str(tmp_path / "run") in check["text"]


# --- the report -------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_lines_keep_to_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = io.StringIO()
    assert len(list(doctor.show([doctor.Check("a_check", NOTE, "some words " * 40)], stream))) == 1
    assert max(map(len, stream.getvalue().splitlines())) <= columns


def test_no_control_character_of_a_strange_run_reaches_the_terminal():
    stream = io.StringIO()
    check = doctor.Check("run", OK, "runs/\x1b[2J\x1b]0;mine\x07: preset fast")
    assert list(doctor.show([check], stream))
    assert "\x1b" not in stream.getvalue()
    assert "runs/?[2J?]0;mine?: preset fast" in " ".join(stream.getvalue().split())


def test_a_check_with_a_bug_is_a_failure_and_the_others_go_on(monkeypatch, capsys):
    monkeypatch.setattr(machine, "check_memory", lambda: 1 / 0)
    assert main(["doctor", "--json"]) == 1
    checks = {each["name"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert "ZeroDivisionError" in checks["memory"]["text"]
    assert checks["rom"]["level"] == OK


def test_the_page_names_every_check_field_level_and_finding(capsys, trained):
    main(["doctor", str(trained.path), "--json"])
    report = json.loads(capsys.readouterr().out)
    named = set(re.findall(r"`(\w+)`", PAGE))
    wanted = set(report) | set(report["checks"][0]) | set(LEVELS)
    wanted |= {check["name"] for check in report["checks"]}
    assert wanted <= named, wanted - named
    source = (ROOT / "src/pixelpong/agent/health.py").read_text("utf-8")
    titles = set(re.findall(r'WARNING, "([A-Z][a-z ]+)"', source))
    assert titles
    assert titles <= set(re.findall(r"^### (.*)$", PAGE, flags=re.M))
