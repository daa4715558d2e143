"""Whatever is in a file: it is read, or refused with a declared error of one line.

Each input is given one second of processor time and 256 MB, and both are measured.
"""

from __future__ import annotations

import dataclasses
import json
import os

import numpy as np
import pytest
from hostile import Worst, for_examples, quick_and_soak, refuse_or_read, within_limits
from readers import Forged, lines_of, make_readers, make_trained

from pixelpong.agent.file import (
    MAX_WEIGHTS,
    decode_agent,
    encode_agent,
    load_milestone,
    load_shipped,
)
from pixelpong.config import Config
from pixelpong.config.options import Option
from pixelpong.config.presets import read_toml
from pixelpong.config.protocols import find_protocol
from pixelpong.env import make_emulator
from pixelpong.env.pong import pack_snapshot, unpack_snapshot
from pixelpong.errors import (
    MAX_GOT,
    CheckpointError,
    ConfigError,
    EmulatorError,
    NumericsError,
    RunError,
    expected,
)
from pixelpong.faces.cli import main
from pixelpong.faces.page.export import write_page
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.loop import train
from pixelpong.play.replay import MAX_STEPS, Coins, Replay
from pixelpong.run.arrays import decode_arrays, encode_arrays
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile, decode_line
from pixelpong.run.tail import MAX_COLUMNS, Table
from pixelpong.session import Session


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    return make_readers(tmp_path_factory.mktemp("readers"))


NAMES = (
    "checkpoint params.safetensors", "checkpoint state.safetensors", "checkpoint state.json",
    "checkpoint manifest.json", "counters classic", "counters fast", "arrays classic",
    "arrays fast", "params classic", "params fast", "agent classic", "agent fast",
    "lines metrics", "lines episodes", "lines evaluations", "lines replays", "page metrics",
    "page evaluations", "page replays", "page config", "replay", "config.json", "toml", "message",
    "snapshot Catch-v0", "snapshot ALE/Pong-v5",
)  # fmt: skip


@pytest.mark.slow
def test_every_reader_is_here(readers):
    assert set(readers) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_package_writes_is_read(readers, name):
    readers[name].read(readers[name].valid)


@pytest.mark.slow
@quick_and_soak(30, 2000)
@pytest.mark.parametrize("name", NAMES)
def test_any_file_is_read_or_refused_in_one_line(readers, name, number):
    reader, worst = readers[name], Worst()

    def check(content):
        refuse_or_read(lambda: reader.read(content), worst, content[:2000])

    for_examples(number, reader.inputs, check)
    print(f"{name}: {worst}")


# --- what was found ---------------------------------------------------------------------------


def absurd(environment: str, **changes) -> Replay:
    """A replay of as many steps as there can be."""
    protocol = dataclasses.replace(find_protocol(environment), frame_skips=(1, 60))
    coins = Coins(0, "train", 1, 0, offset=0, horizon=1)
    actions = np.zeros(MAX_STEPS, np.int8)
    replay = Replay(protocol, coins, actions, 1, 1, 5.0)
    return dataclasses.replace(replay, **changes)


@pytest.mark.parametrize("environment", ["Catch-v0", "ALE/Pong-v5"])
@pytest.mark.parametrize("horizon", [1, MAX_STEPS, None])
def test_an_absurd_replay_ends_with_the_game(environment, horizon):
    """It asks for 108,000 steps of up to 60 frames; nothing is played beyond the last point."""
    coins = Coins(0, "train", 1, 0, offset=0, horizon=horizon)
    replay = Replay.from_line(absurd(environment, coins=coins).to_line())
    with within_limits(Worst(), environment):
        with pytest.raises(
            RunError, match=r"to end with a return of \+5, got .* of its 108000 steps"
        ):
            for _ in replay.watch():
                pass


def test_an_episode_of_no_steps_forward_is_no_replay(readers):
    line = absurd("Catch-v0").to_line()
    del line["crc32"]
    for wrong in ([60, 1], [0, 1], [1, 61], [1]):
        with pytest.raises(RunError, match="expected a replay"):
            Replay.from_line(line | {"frame_skips": wrong})


def test_a_fourth_action_is_none():
    """Found by atheris: an action takes two bits, and there are three of them."""
    line = absurd("Catch-v0", actions=np.zeros(4, np.int8)).to_line() | {"actions": "wA=="}
    del line["crc32"]
    with pytest.raises(RunError, match="expected a replay, got an unknown action"):
        Replay.from_line(line)


def test_a_replay_of_more_steps_than_an_episode_has_is_none():
    line = absurd("Catch-v0", actions=np.zeros(MAX_STEPS + 1, np.int8)).to_line()
    with pytest.raises(RunError, match="where a whole number from 1 to 108000 belongs"):
        Replay.from_line(line)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return make_trained(tmp_path_factory.mktemp("trained") / "run", "classic")


def changed_card(**changes) -> bytes:
    arrays = decode_arrays(encode_agent(load_shipped(), np.arange(4)))
    card = json.loads(arrays["card"].tobytes()) | changes
    del arrays["sha256"]
    text = np.frombuffer(json.dumps(card).encode(), np.uint8)
    return encode_arrays(arrays | {"card": text})


@pytest.mark.parametrize(
    "changes",
    [
        {"frame_skips": [1, 10**12]}, {"frame_skips": [4, 1]}, {"sticky": float("nan")},
        {"sticky": 2.0}, {"about": {}}, {"about": {"update": "x"}},
        {"about": {"update": 1, "estimated_return": float("nan")}}, {"algorithm": "other"},
        {"shape": [32358, 20_000, 2]},
    ],
    ids=str,
)  # fmt: skip
def test_a_card_of_what_cannot_be_is_refused(changes):
    """Frame skips of a trillion took all memory at the first step that was played."""
    assert decode_agent(changed_card(), "a test").algorithm == "ppo"
    worst = Worst()
    read = refuse_or_read(lambda: decode_agent(changed_card(**changes), "a test"), worst, changes)
    assert read is None
    assert worst.errors == {"CheckpointError"}


def test_of_what_a_stranger_wrote_an_error_repeats_some_letters_on_one_line():
    """A terminal obeys what is no letter."""
    line = expected("a name", "two\nlines\x1b[2J", "look")
    assert line == "expected a name, got two lines?[2J; look"
    assert len(expected("a name", "x" * 10**6, "look")) < MAX_GOT + 100


def test_what_is_nested_without_end_is_refused(tmp_path, trained):
    """Python gives up on it with an error of its own."""
    deep, nested = b"[" * 100_000 + b"]" * 100_000, []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(ConfigError, match="a list nested without end"):
        Config().updated({"steps": nested}, "test")
    while nested:  # taking it apart at once would overflow the stack
        nested = nested.pop()
    (tmp_path / "deep.toml").write_bytes(b"hidden = " + b"[" * 20_000 + b"]" * 20_000)
    with pytest.raises(ConfigError, match="expected TOML in"):
        read_toml(tmp_path / "deep.toml")
    assert decode_line(b'{"update": 1, "x": ' + deep + b"}\n") is None
    run = copied(trained, tmp_path)
    (run.path / "config.json").write_bytes(b'{"format": 1, "x": ' + deep + b"}")
    with pytest.raises(RunError, match="expected a run's configuration"):
        RunDirectory.open(run.path)


def test_an_option_without_bounds_is_finite_all_the_same():
    free = Option("x", float, 0.5)
    for value in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(ConfigError, match="expected x to be a number"):
            free.check(value, "test")


@pytest.mark.parametrize("update", [-1, 2**53, True, 1.0, None, "1"])
def test_a_line_of_what_is_no_update_is_none(update):
    assert decode_line(json.dumps({"update": update}).encode() + b"\n") is None


def test_rows_that_are_counted_from_the_end_are_refused():
    """NumPy takes row −1 for the last one."""
    arrays = decode_arrays(encode_agent(load_shipped(), np.arange(4)))
    del arrays["sha256"]
    rows = np.array([0, 1, 2, -1], np.int16)
    with pytest.raises(CheckpointError, match="rows that are not there"):
        decode_agent(encode_arrays(arrays | {"rows": rows}), "a test")


def test_a_line_without_an_end_is_not_held_in_memory(tmp_path):
    file = LineFile(tmp_path / "lines.jsonl")
    file.append({"update": 1})
    with file.path.open("r+b") as hole:
        hole.truncate(64 << 20)
    worst = Worst()
    with within_limits(worst, "a hole"):
        assert list(file.read()) == [{"update": 1}]
    assert worst.megabytes < 16


def test_an_agent_of_an_unknown_algorithm_is_refused_whatever_its_shapes(trained):
    arrays = decode_arrays(trained.milestones.path(2).read_bytes())
    del arrays["sha256"]
    card = json.loads(arrays["card"].tobytes()) | {"algorithm": "other"}
    text = np.frombuffer(json.dumps(card).encode(), np.uint8)
    with pytest.raises(CheckpointError, match="an unknown algorithm"):
        decode_agent(encode_arrays(arrays | {"card": text}), "a test")


def test_numbers_too_large_for_a_milestone_leave_it_out_with_a_word(tmp_path, monkeypatch):
    """Half precision ends at 65,504: they would be infinite in the file."""
    real = ReinforceLearner.__init__

    def init(self, config):
        real(self, config)
        self.params["W1"][:] *= 1e8

    monkeypatch.setattr(ReinforceLearner, "__init__", init)
    monkeypatch.setattr(
        RunDirectory, "_from_content", classmethod(_with_words(RunDirectory._from_content.__func__))
    )
    WORDS.clear()
    run = make_trained(tmp_path / "run", "classic", updates=2)
    assert run.milestones.updates() == []
    assert any("numbers of at most 6.55e+04 in W1 of a small agent" in word for word in WORDS)
    assert run.checkpoints.load_latest().update == 2
    agent = load_shipped()
    for name, value in (("W1", 1e10), ("W1", np.nan), ("W2", np.inf)):
        params = {each: w.copy() for each, w in agent.params.items()}
        params[name].reshape(-1)[0] = value
        with pytest.raises(NumericsError, match=f"in {name} of a small agent, got 1 others"):
            encode_agent(dataclasses.replace(agent, params=params), np.arange(3), bits=4)
    many = {"W1": np.zeros((6400, MAX_WEIGHTS // 6400 + 1), np.float32)}
    with pytest.raises(NumericsError, match="a first layer of at most"):
        encode_agent(dataclasses.replace(agent, params=many), np.arange(3))


WORDS: list[str] = []


def _with_words(real):
    def from_content(cls, path, content, warn):
        return real(cls, path, content, WORDS.append)

    return from_content


def copied(run: RunDirectory, tmp_path) -> RunDirectory:
    """A copy of a run, to be damaged."""
    import shutil

    shutil.copytree(run.path, tmp_path / "copy")
    return RunDirectory.open(tmp_path / "copy", lambda message: None)


@pytest.mark.parametrize("command", ["evaluate", "record", "watch", "export"])
def test_an_agent_of_another_algorithm_is_refused_before_it_plays(
    trained, tmp_path, command, capsys
):
    """The kernels would read beyond the ends of its arrays."""
    run = copied(trained, tmp_path)
    path = run.path / "config.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    content["config"]["algorithm"] = "ppo"
    path.write_text(json.dumps(content))
    more = {
        "evaluate": ["--engine", "serial"],
        "record": ["--best", "--out", str(tmp_path / "a.gif")],
        "watch": [],
        "export": ["--agent", str(tmp_path / "agent")],
    }
    assert main([command, str(run.path), *more[command]]) == 1
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 1
    assert "expected parameters of the algorithm ppo, got {'W1': (6400, 2)" in err[0]


def test_streams_that_lie_beyond_the_field_are_refused(tmp_path):
    run = make_trained(tmp_path / "run", "fast")
    forged = Forged(run, "state.safetensors")
    arrays = decode_arrays(forged.valid)
    for name in ("stream.0.previous", "stream.1.current"):
        forged.put(encode_arrays(arrays | {name: np.array([6400], np.uint16)}))
        with pytest.raises(CheckpointError, match="got no pixels of stream"):
            Session(RunDirectory.open(run.path), 0.0)
    forged = Forged(run, "state.json")
    state = json.loads(forged.valid)
    state["counters"]["progress"]["streams"][0]["last_action"] = 3
    forged.put(json.dumps(state).encode())
    with pytest.raises(CheckpointError, match="got no last action of stream 0"):
        Session(RunDirectory.open(run.path), 0.0)


ODD_COUNTERS = [
    (("progress", "streams", 0, "tally", "point_rewards"), [5000], "a tally of other points"),
    (("progress", "streams", 0, "tally", "steps"), -1, "where a count belongs"),
    (("progress", "steps"), 1.5, "where a count belongs"),
    (("progress", "update"), 1, "progress of update 1"),
    (("wall_seconds",), float("nan"), "invalid seconds"),
    (("evaluation_seconds",), "1", "invalid seconds"),
    (("next_confirmation",), -1, "where a count belongs"),
]


def test_counters_that_cannot_be_are_no_state_to_go_on_from(tmp_path):
    run = make_trained(tmp_path / "run", "fast")
    forged = Forged(run, "state.json")
    for (*way, last), value, why in ODD_COUNTERS:
        state = json.loads(forged.valid)
        owner = state["counters"]
        for each in way:
            owner = owner[each]
        owner[last] = value
        forged.put(json.dumps(state).encode())
        with pytest.raises(CheckpointError, match=why):
            Session(RunDirectory.open(run.path), 0.0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"versions": {"numpy": 2}}, "versions or a machine that are no texts"),
        ({"machine": {"cores": [2]}}, "versions or a machine that are no texts"),
        ({"changes": 5}, "changes that are no list"),
    ],
)
def test_a_configuration_with_other_things_in_it_is_none(trained, tmp_path, changes, why):
    run = copied(trained, tmp_path)
    path = run.path / "config.json"
    content = json.loads(path.read_text()) | changes
    del content["sha256"]
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match=why):
        RunDirectory.open(run.path)


def test_metrics_with_names_without_end_make_a_page_of_a_few():
    table = Table()
    for update in range(1, 20):
        more = {f"name {update} {number}": 1.0 for number in range(100)}
        table.add({"update": update, "x" * 10_000: 1.0, **more})
    columns = table.columns()
    assert len(columns) <= MAX_COLUMNS
    assert max(map(len, columns)) < 64
    assert {len(values) for values in columns.values()} == {19}


ODD_EVALUATIONS = [
    {"ci95": 5}, {"ci95": [1]}, {"ci95": ["a", "b"]}, {"ci95": [float("nan"), 1.0]},
    {"ci95": [1e300, 1e300]},
]  # fmt: skip


@pytest.mark.parametrize("line", ODD_EVALUATIONS, ids=str)
def test_an_odd_evaluation_is_no_score(trained, tmp_path, line):
    """As where a training was killed between an evaluation and its checkpoint."""
    run = make_trained(tmp_path / "run", "classic", evaluate_every=0)
    valid = lines_of(trained)["evaluations"]
    run.evaluations.path.write_text(json.dumps(valid | {"update": 2} | line) + "\n")
    train(run)
    assert Session(RunDirectory.open(run.path), 0.0).learner.progress.update == 2
    assert run.checkpoints.load_best().score_of == "mean_return_100"


@pytest.mark.parametrize(
    "line",
    [
        {"ci95": 5}, {"ci95": [1]}, {"ci95": ["a", "b"]}, {"ci95": [float("nan"), 1.0]},
        {"returns": 3}, {"mean_return": "high"}, {"returns": ["x"]},
    ],
    ids=str,
)  # fmt: skip
def test_an_odd_evaluation_stops_neither_the_page_nor_the_training(trained, tmp_path, line):
    run = copied(trained, tmp_path)
    valid = lines_of(run)["evaluations"]
    with run.evaluations.path.open("a") as file:
        file.write(json.dumps(valid | line) + "\n")
    write_page(run, tmp_path / "page.html", max_replays=0)
    longer = run.with_config(run.config.updated({"updates": 3}, "test"))
    assert train(longer).progress.update == 3


def test_a_pipe_in_a_files_place_is_not_waited_for(trained, tmp_path):
    run = copied(trained, tmp_path)
    for name in ("config.json", "metrics.jsonl", "milestones/000002.safetensors"):
        (run.path / name).unlink()
        os.mkfifo(run.path / name)
    with pytest.raises(RunError, match="no ordinary file"):
        RunDirectory.open(run.path)
    with pytest.raises(RunError, match="no ordinary file"):
        list(run.metrics.read())
    with pytest.raises(CheckpointError, match="no ordinary file"):
        load_milestone(run.milestones, 2)


@pytest.mark.parametrize("value", [2**63, 10**400, -(10**400), float("inf"), 1 << 20_000],
                         ids=["2^63", "10^400", "-10^400", "inf", "2^20000"])  # fmt: skip
@pytest.mark.parametrize("name", ["steps", "learning_rate", "worker_timeout", "seed"])
def test_numbers_that_nothing_holds_are_no_options(name, value):
    """A whole number beyond all floats, and one that Python refuses to write."""
    with pytest.raises(ConfigError, match=f"expected {name} to be"):
        Config().updated({name: value}, "test")


def test_a_snapshot_that_holds_an_unknown_action_is_refused():
    emulator = make_emulator(find_protocol("ALE/Pong-v5"))
    _, num_frames, state = unpack_snapshot(emulator.get_state())
    with pytest.raises(EmulatorError, match="an action 6 held"):
        emulator.set_state(pack_snapshot(6, num_frames, state))
    emulator.step(2, [0.5] * 6)
