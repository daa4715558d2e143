"""Replays: the very episode again, frame by frame, from a few hundred bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from toys import toy_config, with_updates

from pixelpong.config.presets import load_preset
from pixelpong.config.protocols import find_protocol
from pixelpong.env import fake
from pixelpong.errors import RunError
from pixelpong.items import ACTIONS
from pixelpong.loop import train
from pixelpong.play.replay import Coins, Replay
from pixelpong.run.directory import RunDirectory

FEW = {
    "fast": {"streams": 2, "horizon": 30, "updates": 24, "hidden": 8, "replay_every": 1},
    "classic": {"batch_size": 3, "updates": 4, "hidden": 8, "replay_every": 2},
}


@pytest.fixture
def make_run(mode, tmp_path):
    def make(name="run", **changes) -> RunDirectory:
        config = toy_config(mode, **FEW[mode] | changes)
        return RunDirectory.create(tmp_path / name, config, [].append)

    return make


def replays_of(run):
    return [Replay.from_line(line) for line in run.replays.read()]


@pytest.mark.slow
def test_a_replay_shows_the_very_screens_that_the_agent_saw(make_run, monkeypatch):
    """With one stream, or one episode a batch, an episode's screens are drawn one after another."""
    seen = []
    draw = fake.CatchConsole._draw
    monkeypatch.setattr(
        fake.CatchConsole, "_draw", lambda self: (draw(self), seen.append(self.picture.tobytes()))
    )
    run = make_run(streams=1, batch_size=1)
    train(run)
    played, replays, place = list(seen), replays_of(run), 0
    assert len(replays) >= 2
    for replay in replays:
        screens = [moment.screen.tobytes() for moment in replay.watch()]
        while played[place : place + len(screens)] != screens:
            place += 1
            assert place < len(played), "never seen"


@pytest.mark.slow
def test_replays_are_those_of_the_episodes_file(make_run, mode):
    run = make_run()
    train(run)
    episodes = {line["episode"]: line for line in run.episodes.read()}
    replays = replays_of(run)
    for replay in replays:
        line = episodes[replay.episode]
        *_, last = replay.watch()
        lost_and_won = (line["points_lost"], line["points_won"])
        assert (replay.update, len(replay)) == (line["update"], line["steps"])
        assert (replay.episode_return, last.points) == (line["episode_return"], lost_and_won)
    if mode == "classic":
        assert [replay.update for replay in replays] == [2, 4]


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_resumed_run_has_the_same_replays(make_run, stop):
    whole, broken = make_run("whole"), make_run("broken", updates=stop)
    train(whole)
    train(broken)
    train(with_updates(broken, whole.config.budget.updates))
    assert whole.replays.path.read_bytes() == broken.replays.path.read_bytes()
    assert whole.replays.path.stat().st_size > 0


@pytest.mark.slow
def test_no_replays_where_none_are_wanted(make_run):
    run = make_run(replay_every=0)
    train(run)
    assert not list(run.replays.read())


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast"], indirect=True)
def test_after_another_horizon_only_whole_episodes_are_replayed(make_run):
    run = make_run(updates=3)
    train(run)
    changed = run.with_config(run.config.updated({"horizon": 17, "updates": 40}, "test"))
    train(changed)
    replays = replays_of(run)
    assert replays
    assert not any(replay.coins.update <= 3 < replay.update for replay in replays)
    assert any(replay.coins.update > 3 for replay in replays)
    for replay in replays:
        assert len(list(replay.watch())) == len(replay) + 1


@pytest.mark.slow
def test_pong_is_replayed_frame_by_frame(tmp_path):
    """On the real game: the colours that the emulator showed, and the end it came to."""
    changes = {"updates": 1, "batch_size": 1, "hidden": 4, "replay_every": 1, "engine": "serial"}
    run = RunDirectory.create(tmp_path / "run", load_preset("classic").updated(changes, "test"))
    train(run)
    (replay,) = replays_of(run)
    moments = list(replay.watch())
    assert moments[-1].points[0] == 21
    assert moments[0].frame.shape == (210, 160, 3)
    again = list(replay.watch())
    assert all(
        one.frame.tobytes() == two.frame.tobytes() for one, two in zip(moments, again, strict=True)
    )
    assert len(json.dumps(replay.to_line())) < 2000


@pytest.mark.slow
def test_an_altered_replay_is_noticed(make_run):
    run = make_run()
    train(run)
    line = next(iter(run.replays.read()))
    change = {"episode_return": line["episode_return"] + 1}
    with pytest.raises(RunError, match="another checksum"):
        Replay.from_line(line | change)
    del line["crc32"]  # as a forger would, who could as well write a fitting one
    altered = Replay.from_line(line | change)
    with pytest.raises(RunError, match="expected episode .* to end with a return of"):
        list(altered.watch())


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 8, 9])
def test_actions_survive_their_encoding(number):
    actions = np.random.default_rng(number).choice(ACTIONS, number).astype(np.int8)
    replay = Replay(find_protocol("Catch-v0"), Coins(0, "train", 1, 0), actions, 1, 1, 0.0)
    np.testing.assert_array_equal(Replay.from_line(replay.to_line()).actions, actions)
