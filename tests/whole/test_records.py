"""Each record in ``benchmarks/`` says which command made it, and that command is the right one."""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import pixelpong
from pixelpong.atari.machine import cartridges
from pixelpong.config import BUDGET, Config, differences
from pixelpong.config.presets import load_preset
from pixelpong.faces.api import sweep
from pixelpong.faces.cli import parse
from pixelpong.faces.comparing import describe_sweep
from pixelpong.run.words import signed
from pixelpong.sweeps.grid import make_grid
from pixelpong.sweeps.suites import interquartile_mean

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
MADE_BEFORE = {"strengths.json"}
"""No command of this version makes it; the page says so."""

RECORDS = {
    path.name: json.loads(path.read_text("utf-8"))
    for path in sorted(FOLDER.glob("*.json"))
    if path.name not in MADE_BEFORE
}


def test_the_pages_show_the_command_of_each_record():
    rows = re.findall(r"^\| `([\w.]+)`[^|]*\| (.*?) \|", (FOLDER / "README.md").read_text(), re.M)
    shown = {name: command.strip("`") for name, command in rows if name.endswith(".json")}
    assert shown == {name: it["command"] for name, it in RECORDS.items()} | dict.fromkeys(
        MADE_BEFORE, "–"
    )
    page = (ROOT / "docs/reproduce.md").read_text("utf-8")
    rows = re.findall(r"^\| `(.+?)` \|.*?/benchmarks/([\w.]+json)\)", page, re.M)
    assert {name: RECORDS[name]["command"] for _, name in rows} == {
        name: command for command, name in rows
    }
    assert len(rows) >= 6
    assert RECORDS["solve.json"]["command"] in page.splitlines()


def script_of(command: str) -> tuple[Any, list[str]]:
    """The module of a ``python FILE WORDS`` command, and its words."""
    words = [word for word in shlex.split(command) if "=" not in word]
    path = ROOT / words[1]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, words[2:]


def options_of(name: str) -> argparse.Namespace:
    """The options that the command of a record has."""
    module, words = script_of(RECORDS[name]["command"])
    return module.parse(words)


@pytest.fixture(autouse=True)
def scripts_find_each_other(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def check_sweep(configs: list[Config], record: dict[str, Any], seeds: list[int]) -> None:
    """Each training has the recorded options, the budget too, and the sweep the recorded seeds."""
    wanted = load_preset(record["options"]["preset"]).updated(record["options"], "record")
    for config in configs:
        assert differences(wanted, config).keys() <= {"seed", "num_envs", "num_minibatches"}
        assert [getattr(config, it) for it in BUDGET] == [getattr(wanted, it) for it in BUDGET]
    assert sorted({config.seed for config in configs}) == seeds


def test_the_headlines_command_trains_to_the_win_within_the_recorded_limit():
    """The target of +18 stays, though the command gives another limit."""
    record = RECORDS["solve.json"]
    function, _, given = parse(shlex.split(record["command"])[1:])
    assert function is sweep
    content = {"seed": [], "seeds": given.pop("seeds")}
    assert given.pop("engine") == "serial"
    configs = make_grid(content, given, "record")
    check_sweep(configs, record, [row["seed"] for row in record["seeds"]])
    assert {config.until_return for config in configs} == {18.0}


def test_the_page_shows_the_recorded_seeds_rounded_as_everywhere():
    rows = []
    for it in RECORDS["solve.json"]["seeds"]:
        test, fresh = it["test"], it["fresh"]
        cells = [it["seed"], it["attempts"], f"{it['steps']:,}", f"{it['frames']:,}"]
        cells += [round(it["seconds"]), f"{signed(test['mean_return'], 2)} over {test['games']}"]
        rows.append(" | ".join(map(str, [*cells, signed(fresh["mean_return"], 2)])))
    page = (ROOT / "docs/reproduce.md").read_text("utf-8")
    assert [row for row in rows if f"| {row} |" not in page] == []
    assert len(rows) == 20


def test_the_rounds_are_those_of_the_recorded_file():
    record = RECORDS["rounds.json"]
    configs = make_grid(record["file"], {}, "record")
    check_sweep(configs, record, [100, 101, 102])
    names = [
        f"num_envs-{it.num_envs}-num_minibatches-{it.num_minibatches}-seed-{it.seed}"
        for it in configs
    ]
    assert names == [row["name"] for row in record["trainings"]][: len(names)]


@pytest.mark.parametrize("name", ["throughput.json", "throughput_ray.json", "vector.json"])
def test_a_measurement_took_the_time_of_its_command(name):
    record, options = RECORDS[name], options_of(name)
    assert (options.seconds, options.rounds) == (record["seconds"], record["rounds"])
    assert getattr(options, "ray", False) == ("ray_over_threads" in record)


def test_the_ladder_has_the_rungs_the_steps_and_the_seeds_of_its_command():
    record, options = RECORDS["ladder.json"], options_of("ladder.json")
    module, _ = script_of(record["command"])
    assert {name: it["options"] for name, it in record["rungs"].items()} == module.list_rungs()
    seeds = [str(seed) for seed in module.read_seeds([options.seeds])]
    assert {tuple(rung["seeds"]) for rung in record["rungs"].values()} == {tuple(seeds)}
    assert options.steps == record["steps"]


def test_the_other_records_have_the_options_of_their_commands():
    options = options_of("batches.json")
    assert options.engine == RECORDS["batches.json"]["engine"]
    sizes = [row["episodes"] for row in RECORDS["batches.json"]["batches"]]
    assert options.sizes == ",".join(map(str, sizes))
    options, record = options_of("pupils.json"), RECORDS["pupils.json"]
    assert options.seconds == record["seconds"]
    assert options.sizes == [row["players"] for row in record["classes"]]
    options = options_of("plateau.json")
    record = RECORDS["plateau.json"]
    assert (options.agent, options.points) == (record["agent"], record["lost"])


def test_the_games_are_all_that_the_machine_can_play_with_the_frames_of_the_command():
    record, options = RECORDS["games.json"], options_of("games.json")
    assert options.names == []
    assert options.frames == record["frames"]
    listed = {
        name for name, line in cartridges.facts().items() if line.get("scheme") not in (None, "DPC")
    }
    assert record["games"].keys() == listed
    for name, found in record["games"].items():
        if name not in cartridges.not_covered():
            assert found["frames"] == 3 * record["frames"] == 3 * found["poked"]["frames"], name


def test_what_differs_in_memory_or_pictures_is_refused():
    differ = {name for name, it in RECORDS["games.json"]["games"].items() if it.get("differences")}
    assert differ <= cartridges.not_covered().keys()
    wrong = {name for name, it in RECORDS["games.json"]["games"].items() if "wrong_pictures" in it}
    assert wrong <= cartridges.not_covered().keys()
    assert len(RECORDS["games.json"]["games"]) - len(differ) == 103


# Of these, some of the cases were not played yet; the record says how many.
NEWEST = {"backgammon", "casino", "double_dunk", "miniature_golf", "video_cube"}


def test_every_game_was_compared_as_its_command_says_and_none_differs():
    record, options = RECORDS["same_bytes.json"], options_of("same_bytes.json")
    assert list(record["games"]) == options.games == cartridges.scored_names()
    for name in ("seeds", "episodes", "steps"):
        assert record[name] == getattr(options, name)
    rows = record["games"].values()
    assert not any("differences" in row or "refused" in row for row in rows)
    missing = {name: row["missing"] for name, row in record["games"].items() if "missing" in row}
    assert missing.keys() <= NEWEST
    equal = [row for row in rows if "missing" not in row]
    assert record["equal"] == len(equal)
    assert record["whole"] == sum(row.get("fewest_ends", 0) >= record["episodes"] for row in equal)
    cases = len(options.seeds) * len(same_bytes().CASES) * len(rows)
    assert sum(maker["cases"] for maker in record["made_by"]) == cases - sum(missing.values())


def test_one_game_alone_was_compared_in_all_games_and_none_differs():
    name = "same_bytes_alone.json"
    record, options = RECORDS[name], options_of(name)
    assert list(record["games"]) == options.games == cartridges.scored_names()
    assert (record["alone"], options.alone) == (True, True)
    rows = record["games"].values()
    assert not any("differences" in row or "missing" in row for row in rows)
    refused = {"lost_luggage", "skiing"}  # continuous actions
    assert {name for name, row in record["games"].items() if "refused" in row} == refused
    cases = len(options.seeds) * len(same_bytes().CASES_ALONE)
    assert {row["steps"] for row in rows if "refused" not in row} == {cases * record["steps"]}
    assert sum(maker["cases"] for maker in record["made_by"]) == cases * len(rows)


def same_bytes() -> Any:
    """The script that compares."""
    return script_of("python benchmarks/same_bytes.py")[0]


ROW = {"steps": 8, "ends": 1, "cuts": 0, "rewarded": 2, "lives_lost": 0, "differences": []}


def test_a_case_is_written_down_as_soon_as_it_is_compared(tmp_path, monkeypatch):
    module, keep = same_bytes(), tmp_path / "kept"
    clock = iter([1.0, 2.0, 3.5])
    monkeypatch.setattr(module.time, "time", lambda: next(clock))

    def compare(game, seed, episodes, steps, **options):
        lines = keep.read_text().splitlines() if keep.exists() else []
        assert len(lines) == [{}, *module.CASES].index(options) - 1
        return module.Comparison(8)

    monkeypatch.setattr(module, "compare", compare)
    cases = [("pong", 3, index) for index in range(3)]
    rows = module.play_in_turn(cases, 3.0, str(keep), episodes=1, steps=9)
    assert [row["case"] for row in rows] == [0, 1]  # the third would begin too late
    assert list(map(json.loads, keep.read_text().splitlines())) == rows


def test_what_is_kept_is_not_compared_again_and_what_is_missing_is_counted(tmp_path, monkeypatch):
    module, keep = same_bytes(), tmp_path / "kept"
    asked = []

    def play_all(cases, **how):
        asked.extend(cases)
        return [dict(zip(("game", "seed", "case"), case, strict=True)) | ROW for case in cases[:2]]

    monkeypatch.setattr(module, "play_all", play_all)
    kept = [{"game": "pong", "seed": 0, "case": index} | ROW for index in (0, 2)]
    kept[1] |= {"differences": ["step 3: rewards"]}
    lines = [{"commit": "abc", "episodes": 1, "steps": 9}, *kept]
    keep.write_text("".join(json.dumps(line) + "\n" for line in lines))
    how = {"keep": keep, "jobs": 1, "episodes": 1, "steps": 9}
    report = module.compare_all(["pong"], [0, 1], seconds=60, **how)
    seeds = [0] * 2 + [1] * 4
    assert asked == [("pong", seed, k) for seed, k in zip(seeds, (1, 3, 0, 1, 2, 3), strict=True)]
    assert [maker["cases"] for maker in report["made_by"]] == [2, 2]
    row = report["games"]["pong"]
    assert (row["missing"], row["steps"], row["fewest_ends"], report["equal"]) == (4, 32, 1, 0)
    assert row["differences"] == [f"seed 0, {module.CASES[2]}: step 3: rewards"]
    asked.clear()
    assert module.compare_all(["pong"], [0], seconds=0, **how)["games"]["pong"]["missing"] == 2
    assert asked == []
    with pytest.raises(SystemExit, match="other limits"):
        module.compare_all(["pong"], [0], seconds=60, **how | {"steps": 10})


def test_the_presets_are_those_of_the_command_each_with_its_whole_budget():
    record, options = RECORDS["presets.json"], options_of("presets.json")
    assert [row["preset"] for row in record["presets"]] == options.presets
    assert record["games"] == options.games
    for row in record["presets"]:
        config = load_preset(row["preset"])
        assert row["seed"] == (config.seed or options.seed)
        assert row["environment"] == config.environment
        budget = config.episodes or config.updates * config.batch_size
        assert row["episodes"] == budget, row["preset"]


def test_a_game_whose_training_ended_without_a_row_gets_its_row(
    breakout_run, tmp_path, monkeypatch
):
    """Nothing is trained again: a kill came between the end and the row."""
    module, _ = script_of(RECORDS["any_game.json"]["command"])
    monkeypatch.setitem(sys.modules, module.__name__, module)  # for the processes that train
    shutil.copytree(breakout_run, tmp_path / "breakout-0")
    before = (tmp_path / "breakout-0" / "metrics.jsonl").read_bytes()
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"rows": [], "stopped": {"breakout": "nothing was left"}}))
    words = ["breakout", "--steps", "1e5", "--folder", str(tmp_path), "--record", str(record)]
    [report] = module.run_all(module.parse(words))
    assert report["stopped"] == {}
    [row] = report["rows"]
    assert row["steps"] == json.loads(before.splitlines()[-1])["steps"]
    assert (tmp_path / "breakout-0" / "metrics.jsonl").read_bytes() == before


def test_the_screen_is_of_the_last_update_of_its_command():
    record = RECORDS["screen.json"]
    _, _, given = parse(shlex.split(record["command"])[1:])
    assert record["metrics"]["update"] == given["updates"]
    assert given["until_return"] is None


def test_ppo_in_pytorch_has_the_options_of_its_command():
    """Without PyTorch the script cannot be read, but its command can."""
    record = RECORDS["ppo_torch.json"]
    words = shlex.split(record["command"])
    assert int(words[words.index("--games") + 1]) == len(record["greedy_returns"])
    assert f"OMP_NUM_THREADS={record['threads']}" in words


def test_a_record_begins_with_the_command_that_was_given(monkeypatch):
    module, _ = script_of("python benchmarks/records.py")
    monkeypatch.setattr(sys, "argv", ["benchmarks/vector.py", "--rounds", "3"])
    monkeypatch.chdir(ROOT)
    assert module.made_by() == {"command": "python benchmarks/vector.py --rounds 3"}


def test_the_page_of_a_study_shows_its_record_and_the_published_scores():
    record, page = RECORDS["study.json"], (ROOT / "docs/howto/study.md").read_text("utf-8")
    scores = [row["human_normalised"] for row in record["rows"]]
    assert record["all"]["interquartile_mean"]["mean"] == pytest.approx(
        interquartile_mean(scores), abs=1e-4
    )
    suite = {"label": "", "games": record["games"], "all": record["all"]}
    facts = {"settings": [], "suites": [suite], "runs": [], "sweep": "runs/sweep-001"}
    shown = describe_sweep(facts).splitlines()
    known = {game.name: game for game in pixelpong.games()}
    for row in record["games"]:
        game = known[row["game"]]
        shown.append(
            f"{game.name}: {row['score']:,.1f}; random {game.random_score:,.1f}, "
            f"human {game.human_score:,.1f}, DQN {game.dqn_score:,.1f}"
        )
    assert "\n".join(shown) in page
