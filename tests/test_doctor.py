"""`pixelpong doctor`: what it measures is so, what is not well is found, and nothing makes it fail.

Each condition is the real one where it can be: a file system without room, a package that is not
there, a cluster that takes a connection and says nothing.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from conftest import patience

import pixelpong
from pixelpong import doctor
from pixelpong.cli import main
from pixelpong.config import Config
from pixelpong.doctor import card, cluster, machine, of_run, packages, pages, picture, rom, workers
from pixelpong.doctor import emulator as emulator_checks
from pixelpong.doctor.records import FAILURE, LEVELS, NOTE, OK, WARNING, Case
from pixelpong.doctor.text import show
from pixelpong.env import make_emulator, native
from pixelpong.env.ale import AleConsole
from pixelpong.env.native import NotCoveredError
from pixelpong.env.pong import PongEmulator
from pixelpong.errors import EmulatorWarning
from pixelpong.protocols import find_protocol
from pixelpong.report.health import _CHECKS, GOOD
from pixelpong.train import train
from pixelpong.trajectory import DOWN, STAY, UP

ROOT = Path(__file__).parent.parent
SOURCE = str(ROOT / "src")


def call(folder: Path, *words: str, changes=None, **options) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with variables changed, or removed where they are None."""
    environment = {**os.environ, **(changes or {})}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-m", "pixelpong", "doctor", *words],
        cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120, **options,
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


def case_of(**changes) -> Case:
    return Case(Config().updated(changes, "test"))


def sees(check, level: str, *words: str) -> bool:
    """Whether a check has this level, and where that is not ok, the shape of all our errors."""
    assert check.level == level, check
    if level != OK:
        assert re.fullmatch(r"expected .+, got .+; .+", check.text), check.text
    assert "\n" not in check.text
    return all(word in check.text for word in words)


# --- the card ---------------------------------------------------------------------------------


def measured(emulator, steps=600):
    return card.measure(emulator, PongEmulator(find_protocol("ALE/Pong-v5", 1, 0.0)), steps, 60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "skips", "sticky"),
    [
        ("ALE/Pong-v5", {4}, 0.25),
        ("Pong-v0", {2, 3, 4}, 0.25),
        ("PongDeterministic-v4", {4}, 0.0),
        ("PongNoFrameskip-v4", {1}, 0.0),
    ],
)
def test_the_card_is_that_of_each_protocol(environment, skips, sticky):
    protocol = find_protocol(environment)
    found = measured(make_emulator(protocol))
    assert set(found.frames) == skips
    assert found.strange == 0
    low, high = card.wilson_interval(found.held, found.tossed, card.SIGMAS)
    assert low - 1e-9 <= sticky <= high + 1e-9
    for judge in (card.judge_frame_skip, card.judge_sticky, card.judge_gap):
        assert judge(protocol, found).level == OK


@pytest.mark.slow
def test_other_coins_than_the_protocols_are_found_out():
    protocol = find_protocol("ALE/Pong-v5")
    for sticky in (0.0, 0.1, 0.5):
        found = measured(make_emulator(find_protocol("ALE/Pong-v5", sticky=sticky)))
        check = card.judge_sticky(protocol, found)
        assert sees(check, FAILURE, "probability 0.25"), check
        assert abs(check.facts["measured"] - sticky) < 0.06


@pytest.mark.slow
def test_the_probability_is_not_biased():
    """Over so many steps that a bias of one in a hundred would be seen."""
    found = measured(make_emulator(find_protocol("ALE/Pong-v5", sticky=0.5)), 3000)
    low, high = card.wilson_interval(found.held, found.tossed, 3.0)
    assert low < 0.5 < high
    assert high - low < 0.06


def test_another_frame_skip_than_the_protocols_is_found_out():
    found = measured(make_emulator(find_protocol("ALE/Pong-v5", frame_skip=3)), 50)
    check = card.judge_frame_skip(find_protocol("ALE/Pong-v5"), found)
    assert sees(check, FAILURE, "expected 4 frames a step, got 3 in 50")


@pytest.mark.slow
def test_an_emulator_with_coins_of_its_own_is_found_out():
    """As ALE tosses them itself where its option is not set to 0."""
    emulator = make_emulator(find_protocol("ALE/Pong-v5"), "ale")
    emulator.console._ale.setFloat("repeat_action_probability", 0.25)
    emulator.console._ale.loadROM(str(rom.rom_path()))
    found = measured(emulator, 300)
    assert found.strange > 0
    assert sees(card.judge_gap(emulator.protocol, found), FAILURE, "300 steps")


def test_a_picture_that_is_not_that_of_the_last_frame_is_found_out():
    emulator = make_emulator(find_protocol("ALE/Pong-v5"))

    class Lagging:
        """Shows the step before."""

        protocol = emulator.protocol

        def __getattr__(self, name):
            return getattr(emulator, name)

        def step(self, action, draws):
            self.screen = emulator.screen.copy()
            return emulator.step(action, draws)

    lagging = Lagging()
    lagging.screen = emulator.screen
    assert measured(lagging, 100).strange > 10


def test_the_card_is_measured_in_time_on_a_slow_machine():
    begin = time.monotonic()
    found = card.measure(
        make_emulator(find_protocol("ALE/Pong-v5")),
        PongEmulator(find_protocol("ALE/Pong-v5", 1, 0.0)), 10**9, 0.2,
    )  # fmt: skip
    assert time.monotonic() - begin < 2 * patience()
    assert found.steps > 5


@pytest.mark.slow
def test_with_many_frames_a_step_nothing_is_claimed_of_coins():
    checks = {c.name: c for c in card.check_card(case_of(frame_skip=8))}
    assert checks["sticky"].level == NOTE
    assert checks["frame_skip"].facts["steps_by_frames"].keys() == {"8"}
    assert only(card.check_card(case_of(environment="Catch-v0"))).level == NOTE


def test_colours_and_actions_are_seen_on_the_emulator(monkeypatch):
    alone = PongEmulator(find_protocol("ALE/Pong-v5", 1, 0.0))
    colours = picture.look_at_colours(alone)
    assert colours.level == OK
    assert colours.facts["ball"] == {"14": [236, 236, 236]}
    assert picture.look_at_first_frame(alone).facts["background"] == 228
    moved = picture.look_at_actions(alone).facts
    assert moved["up"]["rows"] < 0 < moved["down"]["rows"]

    real = alone.step
    swapped = {STAY: STAY, UP: DOWN, DOWN: UP}
    monkeypatch.setattr(alone, "step", lambda action, draws: real(swapped[action], draws))
    assert sees(picture.look_at_actions(alone), FAILURE, "2 up (+52 rows")
    monkeypatch.setitem(picture.PALETTE, "ball", 15)
    assert sees(picture.look_at_colours(alone), FAILURE, "ball 15")
    monkeypatch.setattr(picture, "FIRST_BACKGROUND", 34)
    assert sees(picture.look_at_first_frame(alone), FAILURE, "got 228")


# --- the ROM ----------------------------------------------------------------------------------


def test_the_rom_is_the_measured_one():
    check = only(rom.check_rom(case_of()))
    assert check.level == OK
    assert check.facts["md5"] == "60e0ea3cbe0913d39803477945e9e5ec"


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["flipped", "short", "none", "folder", "pipe"])
def test_another_rom_is_a_failure_and_nothing_is_played_with_it(tmp_path, damage):
    content, file = bytearray(rom.rom_path().read_bytes()), tmp_path / "pong.bin"
    content[100] ^= 1
    if damage == "folder":
        file.mkdir()
    elif damage == "pipe":
        os.mkfifo(file)
    elif damage != "none":
        file.write_bytes(content if damage == "flipped" else content[:1000])
    done = call(tmp_path, "--json", changes={"ALE_ROMS_DIR": str(tmp_path)})
    checks = report_of(done)
    assert done.returncode == 1
    assert checks["rom"]["level"] == FAILURE
    assert "unset ALE_ROMS_DIR" in checks["rom"]["text"]
    for name in ("emulator", "ale", "frame_skip", "workers", "speed"):
        assert checks[name]["level"] == NOTE
        assert "got rom that failed" in checks[name]["text"]


# --- the emulators ----------------------------------------------------------------------------


def test_the_emulator_is_loaded_from_where_it_is_kept():
    check = only(emulator_checks.check_emulator(case_of()))
    assert sees(check, OK, "native", check.facts["folder"])
    assert check.facts["plays"] == "native"
    check = only(emulator_checks.check_emulator(case_of(emulator="ale")))
    assert sees(check, OK, "the configuration asks for ale")
    assert check.facts["plays"] == "ale"


def test_both_emulators_are_seen_to_play_the_same(monkeypatch):
    assert only(emulator_checks.check_ale(case_of())).level == OK
    real = AleConsole.run

    def run(self, actions, draws):
        return real(self, bytes(3 if action == 2 else action for action in actions), draws)

    monkeypatch.setattr(AleConsole, "run", run)
    assert sees(only(emulator_checks.check_ale(case_of())), FAILURE, "another one at frame")


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_to_is_a_warning(tmp_path):
    (tmp_path / "file").touch()  # root may write to every folder
    changes = {"PIXELPONG_CACHE_DIR": str(tmp_path / "file" / "cache")}
    check = report_of(call(tmp_path, "--quick", "--json", changes=changes))["emulator"]
    assert check["level"] == WARNING
    assert "cannot be written to: each process compiles anew" in check["text"]
    assert check["facts"]["was_kept"] is False


def test_the_card_is_measured_on_ale_if_ours_cannot_play(monkeypatch):
    def refuse():
        raise NotCoveredError("no machine code can be made here")

    monkeypatch.setattr(native, "load_game", refuse)
    monkeypatch.setattr(emulator_checks, "load_game", refuse)
    check = only(emulator_checks.check_emulator(case_of()))
    assert sees(check, WARNING, "no machine code can be made here; nothing need be done: ALE plays")
    with pytest.warns(EmulatorWarning, match="ALE plays"):
        assert sees(only(emulator_checks.check_ale(case_of())), NOTE, "ALE alone")
    with pytest.warns(EmulatorWarning, match="ALE plays"):
        checks = list(card.check_card(dataclasses.replace(case_of(), is_quick=True)))
    assert {check.level for check in checks} == {OK}


# --- packages ---------------------------------------------------------------------------------


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(packages.CORE) == {re.split(">=", each)[0] for each in project["dependencies"]}
    (everything,) = project["optional-dependencies"]["all"]
    assert list(packages.EXTRAS) == re.findall(r"\[(.*)\]", everything)[0].split(",")
    for extra, modules in packages.EXTRAS.items():
        assert len(modules) == len(project["optional-dependencies"][extra])


def hide(folder: Path, *names: str) -> dict[str, str]:
    """Variables with which these modules cannot be found, as where they are not installed."""
    (folder / "hiding").mkdir()
    (folder / "hiding" / "sitecustomize.py").write_text(
        f"import sys\nfor name in {names!r}: sys.modules[name] = None\n"
    )
    return {"PYTHONPATH": os.pathsep.join([str(folder / "hiding"), SOURCE])}


@pytest.mark.slow
def test_missing_extras_are_a_note_with_the_command_that_brings_them(tmp_path):
    changes = hide(tmp_path, "ray", "matplotlib", "av", "uvicorn", "multi_agent_ale_py")
    checks = report_of(call(tmp_path, "--quick", "--json", changes=changes))
    assert checks["extras"]["level"] == NOTE
    assert "pip install 'pixelpong[ray,video,plot,web,play]'" in checks["extras"]["text"]
    assert checks["ray"]["level"] == NOTE
    assert "pip install 'pixelpong[ray]'" in checks["ray"]["text"]
    asked = call(tmp_path, "--quick", "--json", "--ray-address", "auto", changes=changes)
    assert report_of(asked)["ray"]["level"] == FAILURE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy", "ale_py", "numba", "threadpoolctl"])
def test_a_core_package_that_is_missing_is_a_failure_and_not_a_traceback(tmp_path, name):
    checks = report_of(call(tmp_path, "--json", "none", changes=hide(tmp_path, name)))
    distribution = name.replace("_", "-")
    assert checks["packages"]["level"] == FAILURE
    assert f"pip install {distribution}" in checks["packages"]["text"]
    assert checks["workers"]["text"].startswith("expected to look at this, got packages")


def test_a_package_that_cannot_be_loaded_is_a_failure(tmp_path):
    """It is there, but broken, as after half an upgrade."""
    (tmp_path / "broken" / "ale_py").mkdir(parents=True)
    (tmp_path / "broken" / "ale_py" / "__init__.py").write_text("raise ImportError('undefined')")
    changes = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "broken"), SOURCE])}
    shutil.copytree(rom.rom_path().parent, tmp_path / "roms")
    changes["ALE_ROMS_DIR"] = str(tmp_path / "roms")
    checks = report_of(call(tmp_path, "--quick", "--json", changes=changes))
    assert checks["rom"]["level"] == checks["emulator"]["level"] == checks["actions"]["level"] == OK
    assert checks["ale"]["level"] == FAILURE
    assert "got undefined; install it anew" in checks["ale"]["text"]


def test_a_package_that_is_too_old_is_a_warning(monkeypatch):
    monkeypatch.setattr(packages.metadata, "requires", lambda _: ["numpy>=999.0", "rich>=14"])
    check = only(packages.check_packages(case_of()))
    assert sees(check, WARNING, "pip install -U 'numpy>=999.0'")


# --- the machine ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "quota", "left"),
    [
        ({"cpu.max": "150000 100000", "memory.max": "900", "memory.current": "400"}, 1.5, 500),
        ({"cpu.max": "max 100000", "memory.max": "max", "memory.current": "4"}, None, None),
        ({"cpu.max": "nonsense", "memory.max": "", "memory.current": "-"}, None, None),
        ({}, None, None),
    ],
)
def test_limits_of_a_control_group_are_found_at_any_height(tmp_path, files, quota, left):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n")
    (tmp_path / "sys/fs/cgroup/a/b").mkdir(parents=True)
    for name, content in files.items():
        (tmp_path / "sys/fs/cgroup/a" / name).write_text(content + "\n")
    assert machine.read_core_limit(tmp_path) == quota
    assert machine.read_memory_left(tmp_path) == left


def test_limits_of_the_first_version_are_found_too(tmp_path):
    for path, content in {
        "proc/self/cgroup": "4:cpu,cpuacct:/x\n3:memory:/x\n",
        "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "50000",
        "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1000",
        "sys/fs/cgroup/memory/x/memory.usage_in_bytes": "1",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    assert (machine.read_core_limit(tmp_path), machine.read_memory_left(tmp_path)) == (0.5, 999)


def test_a_training_takes_no_more_cores_than_its_group_allows(monkeypatch):
    """A container of two cores on a machine of sixty-four would else start sixty-four workers."""
    from pixelpong import machine as cores

    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(64)))
    for limit, wanted in ((None, 64), (2.0, 2), (1.5, 1), (0.5, 1), (128.0, 64)):
        monkeypatch.setattr(cores, "read_core_limit", lambda limit=limit: limit)
        assert cores.count_cores() == wanted


def test_fewer_cores_or_less_memory_than_the_workers_want_is_a_warning(monkeypatch):
    monkeypatch.setattr(machine, "read_core_limit", lambda: 1.5)
    check = only(machine.check_cores(case_of(workers=8)))
    assert sees(check, WARNING, "a limit of 1.5 by cgroup for 8 workers; give --workers 1")
    monkeypatch.setattr(machine, "read_memory_left", lambda: 5 * 10**8)
    assert sees(only(machine.check_memory(case_of(workers=8))), WARNING, "got 500 MB")
    assert only(machine.check_memory(case_of(workers=1))).level == OK


@pytest.mark.parametrize(("size", "level"), [("20m", FAILURE), ("200m", WARNING), ("500m", OK)])
def test_little_room_for_runs_is_found_on_a_real_disk(small_disk, size, level):
    check = machine.look_at_folder("disk", small_disk(size) / "not" / "there" / "yet")
    assert sees(check, level)


def test_a_folder_that_cannot_be_written_to_is_a_failure(small_disk):
    disk = small_disk("500m")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    check = machine.look_at_folder("disk", disk / "runs")
    assert sees(check, FAILURE, "Read-only file system")


def test_shared_memory_that_is_missing_or_small_matters_to_ray_alone(tmp_path, small_disk):
    for folder in (tmp_path / "none", small_disk("4m")):
        assert sees(only(machine.check_shared_memory(case_of(), folder)), NOTE)
        assert sees(only(machine.check_shared_memory(case_of(engine="ray"), folder)), WARNING)


@pytest.mark.slow
def test_without_shared_memory_and_home_it_goes_through(tmp_path):
    """In a mount namespace of its own, where /dev/shm is gone."""
    probe = ["unshare", "-m", "sh", "-c", "umount /dev/shm"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("only root can take /dev/shm away")
    script = f'umount /dev/shm; rmdir /dev/shm 2>/dev/null; exec "{sys.executable}" -m pixelpong '
    script += "doctor --json"
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "USER")}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    checks = report_of(done)
    assert done.returncode == 0
    assert checks["workers"]["level"] == OK


# --- workers and the cache --------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_is_made_and_answers():
    checks = {check.name: check for check in workers.check_workers(case_of())}
    assert checks["workers"].level == OK
    assert "numba_cache" in checks


def test_a_worker_that_never_answers_is_a_failure_in_time(monkeypatch):
    monkeypatch.setattr(workers, "SECONDS", 0.0)
    assert sees(only(workers.check_workers(case_of())), FAILURE, "none within")


PROBE = """
import json
from dataclasses import asdict
from pixelpong.doctor import Step, _carry_out, records
from pixelpong.presets import load_preset
if __name__ == "__main__":
    step = Step("Workers", "workers", "workers.check_workers")
    checks = _carry_out(step, records.Case(load_preset("fast")), set())
    print(json.dumps([asdict(check) for check in checks]))
"""


def probe_with_cache(folder: Path) -> dict[str, dict]:
    """What a process finds that keeps its kernels in `folder`."""
    script = folder.with_name("probe.py")
    script.write_text(PROBE)
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {check["name"]: check for check in json.loads(done.stdout)}


@pytest.mark.slow
def test_a_cold_cache_is_noted_and_is_warm_the_next_time_and_a_damaged_one_is_made_anew(tmp_path):
    cold = probe_with_cache(tmp_path / "cache")["numba_cache"]
    assert cold["level"] == NOTE
    assert cold["facts"]["compiled"] > 0
    assert str(tmp_path / "cache") in cold["text"]
    warm = probe_with_cache(tmp_path / "cache")["numba_cache"]
    assert (warm["level"], warm["facts"]["compiled"]) == (OK, 0)
    assert warm["facts"]["loaded"] > 0
    for file in (tmp_path / "cache").rglob("*.nbi"):
        file.write_bytes(file.read_bytes()[:100])
    checks = probe_with_cache(tmp_path / "cache")
    assert checks["workers"]["level"] == OK
    assert checks["numba_cache"]["facts"]["compiled"] > 0
    assert probe_with_cache(tmp_path / "cache")["numba_cache"]["level"] == OK


def test_nowhere_to_keep_kernels_is_a_warning(tmp_path, small_disk):
    answer = {"folder": None, "loaded": 0, "compiled": 4, "ready_seconds": 5.0}
    assert sees(workers.judge_cache(answer), WARNING, "each process compiles", "NUMBA_CACHE_DIR")
    disk = small_disk("1m")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    answer["folder"] = str(disk)
    assert sees(workers.judge_cache(answer), WARNING, "cannot be written to")
    assert workers.judge_cache(answer | {"compiled": 0, "loaded": 4}).level == OK


@pytest.mark.slow
def test_a_package_that_cannot_be_written_to_works_without_a_home(tmp_path):
    """Numba finds no place at all for what it compiles."""
    package = tmp_path / "site" / "pixelpong"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(pixelpong.__file__).parent, package, ignore=ignore)
    mount = ["mount", "--bind", "-o", "ro", str(package), str(package)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a folder")
    try:
        changes = {
            "PYTHONPATH": str(package.parent), "HOME": "/proc/nowhere", "XDG_CACHE_HOME": None,
            "NUMBA_CACHE_DIR": None,
        }  # fmt: skip
        checks = report_of(call(tmp_path, "--json", changes=changes))
    finally:
        subprocess.run(["umount", str(package)], check=True)
    assert checks["numba_cache"]["level"] == WARNING
    assert "got none, so each process compiles them anew" in checks["numba_cache"]["text"]
    assert checks["workers"]["level"] == OK


# --- Ray --------------------------------------------------------------------------------------


@pytest.fixture
def silent_port():
    """Somebody who takes the connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.ray
def test_an_address_where_nobody_answers_is_said_in_time(silent_port):
    for address, words in {
        f"127.0.0.1:{silent_port}": "timed out",
        "127.0.0.1:1": "Connection refused",
        "nonsense": "HOST:PORT",
    }.items():
        begin = time.monotonic()
        check = only(cluster.check_ray(dataclasses.replace(
            case_of(ray_address=address), is_cluster_asked=True)))  # fmt: skip
        assert sees(check, FAILURE, words), check
        assert check.page == pages.CLUSTER
        assert time.monotonic() - begin < cluster.SECONDS + 2 * patience()


@pytest.mark.ray
def test_an_address_of_the_surroundings_is_looked_at_as_well(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert only(cluster.check_ray(case_of())).level == WARNING


@pytest.mark.ray
def test_a_probe_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(cluster, "_PROBE", "import time; time.sleep(60)")
    begin = time.monotonic()
    assert "no answer within 1 seconds" in cluster.ask_cluster("a:1", 1)["problem"]
    assert time.monotonic() - begin < 5 * patience()
    monkeypatch.setattr(cluster, "_PROBE", "import sys; sys.exit('planted')")
    assert "got planted; see it with 'ray status'" in cluster.ask_cluster("a:1", 10)["problem"]


@pytest.mark.ray
def test_a_cluster_says_how_large_it_is(ray_cluster):
    import ray

    check = only(cluster.check_ray(case_of(ray_address=ray.get_runtime_context().gcs_address)))
    assert check.level == OK, check
    assert (check.facts["nodes"], check.facts["cores"]) == (1, 2)


# --- a run ------------------------------------------------------------------------------------


class Silence:
    """A display that shows nothing."""

    def __getattr__(self, name):
        return lambda *_, **__: None


@pytest.fixture
def trained(make_run):
    run = make_run(updates=8, save_every=2)
    train(run, Silence(), lambda: False, time.monotonic())
    return run


def look_at(run) -> dict[str, list]:
    checks: dict[str, list] = {}
    for check in of_run.check_run(Case(run.config, run=run.path)):
        checks.setdefault(check.name, []).append(check)
    return checks


def test_a_sound_run_is_sound(trained):
    checks = look_at(trained)
    assert {check.level for each in checks.values() for check in each} == {OK}
    assert only(checks["checkpoints"]).facts["sound"] == trained.checkpoints.updates()
    assert only(checks["lines"]).facts["files"]["metrics"] == {"lines": 8, "damaged": 0}
    assert only(checks["lock"]).facts["is_live"] is False


def test_a_training_at_work_is_seen_and_not_disturbed(trained):
    with trained.lock():
        assert only(look_at(trained)["lock"]).facts["is_live"] is True
    trained.lock().__exit__()


def test_flipped_bits_are_found_and_what_is_left_is_said(trained):
    *others, newest = trained.checkpoints.updates()
    flip(trained.checkpoints.path(newest) / "params.safetensors")
    check = only(look_at(trained)["checkpoints"])
    words = f"got update {newest} with params.safetensors with another SHA-256"
    assert sees(check, WARNING, words, f"goes on from update {others[-1]}")
    for update in others:
        flip(trained.checkpoints.path(update) / "state.json")
    assert sees(only(look_at(trained)["checkpoints"]), FAILURE, f"got {len(others) + 1} damaged")
    shutil.rmtree(trained.checkpoints.folder)
    assert sees(only(look_at(trained)["checkpoints"]), FAILURE, "got none")


def test_damaged_lines_are_counted(trained):
    flip(trained.metrics.path, place=1)
    assert sees(only(look_at(trained)["lines"]), WARNING, "1 of 8 in metrics.jsonl")
    trained.metrics.path.unlink()
    os.mkfifo(trained.metrics.path)
    assert sees(only(look_at(trained)["lines"]), WARNING)


def test_another_machine_is_a_note(trained):
    moved = dataclasses.replace(trained, versions={**trained.versions, "numpy": "1.0"})
    assert sees(of_run._look_at_machine(moved), NOTE, "numpy 1.0 → ")


def test_a_run_that_has_not_begun_is_no_failure(make_run):
    checks = look_at(make_run())
    assert only(checks["checkpoints"]).level == NOTE
    assert "Too early to tell" in only(checks["health"]).text


def test_health_comes_with_advice_and_a_page(trained):
    lines = list(trained.metrics.read())
    trained.metrics.path.unlink()
    for line in lines:
        trained.metrics.append(line | {"up_share": 0.999, "entropy": 0.001})
    found = {check.facts["title"]: check for check in look_at(trained)["health"]}
    assert {"One action only", "Entropy gone"} <= set(found)
    check = found["Entropy gone"]
    assert check.level == WARNING
    assert "lower --learning-rate" in check.text
    assert check.page == "howto/doctor.md#entropy-gone"


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"format": 99}', None])
def test_what_is_no_run_is_one_failure(tmp_path, content):
    (tmp_path / "run").mkdir()
    if content is not None:
        (tmp_path / "run" / "config.json").write_bytes(content)
    check = only(of_run.check_run(Case(Config(), run=tmp_path / "run")))
    assert sees(check, FAILURE, str(tmp_path / "run"))


@pytest.mark.slow
def test_a_run_that_is_not_there_is_a_failure_after_all_that_can_be_said(tmp_path):
    done = call(tmp_path, "none", "--quick")
    assert (done.returncode, done.stderr) == (1, "")
    assert "which is none" in done.stdout
    assert "this needs mending: " in done.stdout


def flip(path: Path, place: int = -20) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


# --- the whole --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.alone
def test_all_of_it_takes_fifteen_seconds_and_finds_this_machine_well(tmp_path):
    call(tmp_path, "--json")  # what was to be compiled is
    begin = time.monotonic()
    done = call(tmp_path, "--json")
    assert time.monotonic() - begin < 17 * patience()
    report = json.loads(done.stdout)
    assert (done.returncode, report["is_sound"]) == (0, True)
    assert report["schema"] == doctor.SCHEMA
    assert sum(report["counts"].values()) == len(report["checks"])
    assert {check["level"] for check in report["checks"]} <= set(LEVELS)
    assert set(os.listdir(tmp_path)) == set(), "it leaves nothing behind"


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("colours", [True, False])
def test_it_keeps_to_the_columns_with_and_without_colours(tmp_path, monkeypatch, columns, colours):
    import io

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if colours:
        monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    levels = [doctor.Outcome("Machine", c, 0.0) for c in one_of_each()]
    assert len(list(show(levels, stream))) == 4
    lines = stream.getvalue().splitlines()
    assert any("\x1b[" in line for line in lines) == colours
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert max(map(len, plain)) <= columns
    assert not any(line.endswith(" ") for line in plain)
    text = "".join("".join(plain).split())
    for check in one_of_each():
        assert check.level in text
        assert "".join(check.text.split()) in text


def one_of_each():
    for level in LEVELS:
        text = f"expected {'words ' * 20}, got /a/path/{'without/an/end/' * 8}; [bold]do it[/bold]"
        yield doctor.Check("a_check", level, text, {}, "howto/doctor.md")


def test_no_letter_of_a_strange_run_reaches_the_terminal_as_a_command(tmp_path):
    import io

    stream = io.StringIO()
    check = doctor.Check("run", OK, "runs/\x1b[2J\x1b]0;mine\x07: preset fast")
    assert list(show([doctor.Outcome("Run", check, 0.0)], stream))
    assert "\x1b" not in stream.getvalue()
    assert "runs/?[2J?]0;mine?: preset fast" in " ".join(stream.getvalue().split())


@pytest.mark.slow
def test_wrong_usage_is_refused(tmp_path):
    for words, wanted in {
        ("--frobnicate",): "did you mean",
        ("--sticky", "2"): "expected --sticky",
        ("--environment", "Breakout"): "expected --environment to be one of",
        ("--seconds", "nan"): "expected --seconds from 1 to 3600",
        ("--workers", "0"): "expected --workers",
    }.items():
        done = call(tmp_path, *words)
        assert done.returncode == 2, done
        assert done.stderr.count("\n") == 1
        assert wanted in done.stderr or words == ("--frobnicate",)


def test_a_check_with_a_bug_is_a_failure_and_the_others_go_on(monkeypatch, capsys):
    monkeypatch.setattr(machine, "check_memory", lambda case: 1 / 0)
    assert main(["doctor", "--quick", "--json"]) == 1
    checks = {each["name"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert "ZeroDivisionError" in checks["memory"]["text"]
    assert checks["frame_skip"]["level"] == OK


@pytest.mark.slow
def test_an_interrupt_ends_it_without_a_word_too_many(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "pixelpong", "doctor"], cwd=tmp_path, text=True, process_group=0,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    timer = threading.Timer(60, process.kill)
    timer.start()
    assert process.stdout.readline().strip() == "Packages"
    while "actions" not in process.stdout.readline():
        assert process.poll() is None
    os.killpg(process.pid, 2)
    _, err = process.communicate(timeout=30)
    timer.cancel()
    assert (process.returncode, err) == (130, "pixelpong: interrupted\n")


# --- its page ---------------------------------------------------------------------------------


def anchors_of(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_each_page_and_heading_that_is_named_exists():
    named = [pages.DAMAGED, pages.OTHER_MACHINE, pages.CLUSTER, pages.SPEED]
    named += map(pages.of_finding, pages.FINDINGS)
    for page in named:
        name, _, anchor = page.partition("#")
        text = (ROOT / "docs" / name).read_text("utf-8")
        assert not anchor or anchor in anchors_of(text), page


def test_each_finding_of_health_has_a_heading():
    source = (ROOT / "src/pixelpong/report/health.py").read_text("utf-8")
    titles = set(re.findall(r'"([A-Z][a-z]+(?: [a-z]+)*)", (?:text|_summary)', source))
    titles |= set(re.findall(r'WARNING, "([A-Z][a-z ]+)"', source))
    assert len(_CHECKS) <= len(titles)
    assert titles - {"All is well"} == set(pages.FINDINGS)
    assert GOOD == "good"


def test_the_page_names_every_check_and_every_field(capsys):
    page = (ROOT / "docs/howto/doctor.md").read_text("utf-8")
    main(["doctor", "--quick", "--json"])
    report = json.loads(capsys.readouterr().out)
    table = set(re.findall(r"`(\w+)`", page))
    assert set(report) | set(report["checks"][0]) <= table
    names = {step.name for step in (*doctor._MACHINE, doctor._RUN, doctor._SPEED)}
    names |= {check["name"] for check in report["checks"]}
    names |= {"sticky", "numba_cache", "time_to_win", "checkpoints", "lines", "lock"}
    names |= {"run_disk", "run_machine", "health"}
    assert names <= table, names - table
    assert np.all([level in table for level in LEVELS])
