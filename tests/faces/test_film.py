"""Films: the emulator's very pixels, at the game's speed, in a file that is whole or not there."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import re
import signal

import numpy as np
import pytest
from accidents import planted
from toys import toy_config

import pixelpong
from pixelpong.agent.choice import Agents, find_agents
from pixelpong.agent.game import play_game
from pixelpong.config.protocols import PROTOCOLS
from pixelpong.errors import PixelpongError
from pixelpong.faces import opening
from pixelpong.faces.look import overlay as look
from pixelpong.faces.look.film import make_film
from pixelpong.faces.look.overlay import draw_overlay
from pixelpong.faces.look.reel import make_reel
from pixelpong.faces.page.library import Library
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

av = pytest.importorskip("av", reason="films need the extra [video]")
Image = pytest.importorskip("PIL.Image", reason="films need the extra [video]")

RATE = 15  # decisions a second in ALE/Pong-v5

PLAIN = {"has_overlay": False, "scale": 3, "speed": 1.0, "seconds": None}


@pytest.fixture(scope="module")
def films(toy_runs, tmp_path_factory):
    """A game, its moments and its films with their reports, made once."""
    agent = Agents.of_run(RunDirectory(toy_runs["fast"])).load()
    play = functools.partial(play_game, agent, 3)
    folder = tmp_path_factory.mktemp("films")
    made = {"agent": agent, "moments": list(play()), "folder": folder}
    for name, changes in {
        "plain.gif": {"scale": 1},
        "plain.mp4": {},
        "overlay.gif": {"has_overlay": True, "seconds": 3.0},
    }.items():
        made[name] = make_film(agent, play, "a game", folder / name, **PLAIN | changes)
    return made


def decode(path):
    """Each picture [height, width, 3] of a GIF with its time in milliseconds."""
    with Image.open(path) as image:
        for index in range(image.n_frames):
            image.seek(index)
            image.load()
            yield np.asarray(image.convert("RGB")), image.info["duration"]


def shown_at(pictures, milliseconds):
    """What a player shows at a time."""
    for picture, duration in pictures:
        milliseconds -= duration
        if milliseconds < 0:
            return picture
    raise AssertionError("the film is over")


def enlarged(moment, scale):
    return moment.frame.repeat(scale, axis=0).repeat(scale, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scale", "end"), [("plain.gif", 1, None), ("overlay.gif", 3, 45)])
def test_pixels_are_those_of_the_emulator(films, name, scale, end):
    pictures, moments = list(decode(films["folder"] / name)), films["moments"][:end]
    assert films[name]["steps"] == moments[-1].step
    row = look.TITLE * scale if name == "overlay.gif" else 0
    for moment in moments:
        picture = shown_at(pictures, 1000 * (moment.step + 0.5) / RATE)
        frame = picture[row : row + 210 * scale, : 160 * scale]
        np.testing.assert_array_equal(frame, enlarged(moment, scale))
    assert len({moment.frame.tobytes() for moment in moments}) > 10


def test_an_mp4_has_a_frame_for_each_step_stays_at_the_end_and_looks_like_the_game(films):
    path, report, moments = films["folder"] / "plain.mp4", films["plain.mp4"], films["moments"]
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = list(container.decode(stream))
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height, stream.average_rate) == (480, 630, RATE)
    assert len(frames) == report["frames"] == len(moments) - 1 + RATE
    assert report["seconds"] == pytest.approx(len(frames) / RATE)
    assert frames[0].time == 0.0
    content = path.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat"), "cannot be played while it loads"
    assert (frames[0].colorspace, frames[0].color_range) == (6, 1)  # BT.601, a video's range
    for number in (0, 20, -1):
        drawn = frames[number].to_ndarray(format="rgb24")
        difference = drawn - enlarged(moments[number], 3).astype(int)
        assert np.abs(np.median(difference, axis=(0, 1))).max() <= 3
        assert np.abs(difference[::3, ::3]).mean() < 4


def test_a_film_runs_at_the_speed_of_the_game_with_delays_that_browsers_respect(films, tmp_path):
    for name, speed, rate, every in (
        ("ALE/Pong-v5", 1.0, 15, 1), ("ALE/Pong-v5", 0.1, 1.5, 1), ("Pong-v0", 1.0, 20, 1),
        ("PongNoFrameskip-v4", 1.0, 30, 2), ("ALE/Pong-v5", 10.0, 50, 3),
    ):  # fmt: skip
        agent = dataclasses.replace(films["agent"], protocol=PROTOCOLS[name])
        play, path = functools.partial(play_game, agent, 3), tmp_path / "film.gif"
        how = PLAIN | {"scale": 1, "speed": speed, "seconds": 7.01 / rate}
        report = make_film(agent, play, "a game", path, **how)
        assert (report["frames_per_second"], report["steps"]) == (rate, 6 * every)
        delays = [delay for _, delay in decode(path)]
        assert min(delays) >= 20
        assert sum(delays) / 1000 == pytest.approx(report["seconds"], abs=0.01)
        assert rate * every * sum(PROTOCOLS[name].frame_skips) / 2 == pytest.approx(60 * speed)


@pytest.mark.parametrize("name", ["classic", "fast"])
def test_the_panel_has_bars_as_long_as_probabilities(toy_runs, name):
    agent = Agents.of_run(RunDirectory(toy_runs[name])).load()
    actions = agent.make_network().actions
    moments = [moment for moment in play_game(agent, 3, explains_every=7) if moment.explanation]
    assert len(moments) > 5
    for moment in moments:
        picture = np.asarray(draw_overlay(moment, agent, "a game", 3))
        explanation = moment.explanation
        bars = picture[: 3 * 115, 3 * 160 :]
        for action, p in zip(actions, explanation.probabilities, strict=True):
            longest = (bars == look.ACTION_INDICES[action]).sum(axis=1).max()
            assert longest == pytest.approx(3 * 112 * p, abs=1)
        margins = [
            bars[3 * (67 + 12 * row) :][: 3 * 9, 3 * 9 : 3 * 14] for row in range(len(actions))
        ]
        marked = [(margin != look.PAPER).any() for margin in margins]
        assert marked == [action == moment.action for action in actions], "the chosen one"


def test_the_command_makes_the_film_that_was_asked_for(toy_runs, tmp_path, call, report):
    words = ["record", toy_runs["fast"], "--scale", "1", "--seconds", "2", "--from", "0"]
    told = report(*words, "--checkpoint", "0", "--episode", "5", "--out", "film.gif")
    assert (told["bytes"], told["frames"]) == ((tmp_path / "film.gif").stat().st_size, 30)
    assert told["is_cut"]
    rules = "ALE/Pong-v5 with at most 300 frames"
    assert told["title"] == f"fast, update 0: greedy episode 5, seed 0, {rules}"
    out = call(*words)[1]
    assert out.startswith(f"{toy_runs['fast']}/videos/update-")
    said = r": 2\.0 s, fast, .* greedy episode 0, seed 0, .* opponent .* agent after 29 steps, "
    said += r"where the film ends before the game\n"
    assert re.search(said, out)
    # An agent without a run has no folder of its own.
    assert call("record", "champion", "--scale", "1", "--seconds", "0.1")[0] == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".gif", ".mp4"}


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    """A run whose own seed is 3, of an agent that wins some points and loses others."""
    path = tmp_path_factory.mktemp("seeded") / "seeded"
    run = RunDirectory.create(path, toy_config("classic", seed=3, updates=2, max_frames=3000))
    train(run)
    return path


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_the_film_of_a_game_is_the_game_of_an_evaluation(seeded, report, seed):
    """Whatever the run's own seed is: the film of the game that was lost can be had."""
    found = pixelpong.evaluate(seeded, 4, seed=seed, engine="serial")
    other = next(number for number in range(4) if found.returns[number] != found.returns[0])
    for episode in (0, other):  # a film takes seconds
        words = ("--seed", seed, "--episode", episode, "--scale", 1, "--speed", 60, "--whole")
        told = report("record", seeded, *words, "--out", "film.gif")
        lost, won = told["points"]
        assert (won - lost, told["is_cut"]) == (found.returns[episode], False)
        assert f"episode {episode}, seed {seed}," in told["title"]
        game = make_reel(Agents.of_run(RunDirectory(seeded)).load(), seed, episode)
        assert game["episode_return"] == found.returns[episode]
        assert (game["final_points"], game["steps"] - 1) == ((lost, won), told["steps"])


def test_record_watch_replay_and_the_page_begin_with_the_first_game_of_seed_0(
    seeded, report, monkeypatch
):
    film = report("record", seeded, "--scale", 1, "--speed", 60, "--whole", "--out", "film.gif")
    asked = []
    monkeypatch.setattr(opening, "_serve", lambda *words: asked.append(words[-1].game))
    opening.watch(seeded)
    opening.watch(seeded, episode=2)
    opening.watch(pixelpong.Run(seeded), checkpoint=2, seed=5)
    assert asked == ["", "0/2", "5/0"]
    library = Library(seeded.parent)
    first, other = (
        json.loads(asyncio.run(library.reel("seeded", "2", *game))) for game in ((), (5, 2))
    )
    library.close()
    assert [(it["seed"], it["episode"]) for it in (first, other)] == [(0, 0), (5, 2)]
    assert list(first["points"][-1]) == film["points"]
    assert (
        pixelpong.Run(seeded)
        .replay(1, 2, seed=5, seconds=0.1)
        .title.startswith(
            "seeded, update 1: greedy episode 2, seed 5, ALE/Pong-v5 with at most 3,000 frames"
        )
    )


def test_a_film_is_the_best_twenty_seconds_or_begins_at_a_step_or_is_whole(report):
    words = ["record", "champion", "--scale", 1]
    scores = [it.score for it in play_game(find_agents("champion")[0].load("champion"), 0)]
    best = report(*words, "--out", "best.gif")
    start, end = best["from_step"], best["steps"]
    assert (best["seconds"], end - start, best["is_cut"]) == (20.0, 20 * RATE - 1, True)
    gain = scores[start + 300] - scores[start]
    assert gain == max(scores[at + 300] - scores[at] for at in range(len(scores) - 300)) > 1
    later = report(*words, "--out", "later.gif", "--from", 100, "--seconds", 1)
    assert (later["from_step"], later["steps"]) == (100, 100 + RATE - 1)
    late = report(*words, "--out", "late.gif", "--from", 10**9, "--seconds", 1)
    assert (late["from_step"], late["steps"], late["is_cut"]) == (*2 * [len(scores) - 1], False)
    shared = report("record", "champion", "--overlay", "--out", "best.mp4")
    assert (shared["from_step"], shared["steps"]) == (start, end)
    assert shared["bytes"] < 3_000_000, "too large to share"


def test_a_long_title_stays_in_the_picture(films):
    rules = "ALE/Pong-v5 with frame skip 2, sticky 0.6, at most 3,000 frames"
    moment = next(play_game(films["agent"], 3, explains_every=1))
    title = f"fast-learning-rate-007, update 120: greedy episode 12, seed 12345, {rules}"
    picture = np.asarray(draw_overlay(moment, films["agent"], title, 3))
    head = picture[: look.TITLE * 3]
    assert (head[:, -3 * 4 :] == look.PAPER).all(), "cut off at the edge"
    assert (head != look.PAPER).any()


def test_ctrl_c_leaves_what_was_there(toy_runs, tmp_path, call):
    path = tmp_path / "film.mp4"
    path.write_text("older")
    place = "pixelpong.faces.look.film:draw_overlay"
    with planted(place, 10, lambda: signal.raise_signal(signal.SIGINT)):
        ended = call("record", toy_runs["fast"], "--out", path, "--overlay")
    assert ended == (130, "", "pixelpong: interrupted\n")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(path.name, "older")]


def test_a_name_that_commands_a_terminal_is_refused_on_one_harmless_line(tmp_path):
    path = tmp_path / f"a\x1b[2J\nb{200 * 'c'}.avi"
    with pytest.raises(PixelpongError, match=r"\.avi") as caught:
        make_film(None, None, "a game", path, **PLAIN)
    assert str(caught.value).isprintable()


def test_the_value_is_a_bar_from_the_middle_to_the_right_for_a_point_that_looks_won(toy_runs):
    agent = Agents.of_run(RunDirectory(toy_runs["fast"])).load()
    moment = next(play_game(agent, 3, explains_every=1))

    def columns(value):
        """Where the bar, 112 units wide, is another one than that of the value 0."""
        bars = []
        for each in (value, 0.0):
            explanation = dataclasses.replace(moment.explanation, value=each)
            shown = dataclasses.replace(moment, explanation=explanation)
            picture = np.asarray(draw_overlay(shown, agent, "a game", 2))
            bars.append(picture[2 * 103 : 2 * 111, 2 * 200 : 2 * 312])
        return np.flatnonzero((bars[0] != bars[1]).any(axis=0)).tolist()

    assert columns(0.5) == list(range(112, 112 + 56))
    assert columns(-0.5) == list(range(112 - 56, 112))
    assert columns(7.0) == list(range(112, 224))
