"""Films: the emulator's very pixels, at the game's speed, in a file that is whole or not there."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import signal
import sys
import types
from fractions import Fraction

import numpy as np
import pytest

from pixelpong.agent.choice import ChosenReplay, choose_replay
from pixelpong.agent.file import Agent
from pixelpong.agent.network import APPEARED, OFF, STAYED, VANISHED, Explanation
from pixelpong.config.presets import load_preset
from pixelpong.config.protocols import PROTOCOLS
from pixelpong.errors import ConfigError, Interrupted, PixelpongError, RunError
from pixelpong.faces.cli import main
from pixelpong.faces.film import choose_pace, describe_film, make_film, overlay, writers
from pixelpong.loop import train
from pixelpong.play.replay import Replay
from pixelpong.run.directory import RunDirectory

av = pytest.importorskip("av", reason="films need the extra [video]")
Image = pytest.importorskip("PIL.Image", reason="films need the extra [video]")


@pytest.fixture(scope="module", params=["fast", "classic"])
def toy(request, tmp_path_factory) -> RunDirectory:
    """A run of the toy game, by each algorithm."""
    return make_toy(request.param, tmp_path_factory.mktemp("runs") / request.param)


@pytest.fixture(scope="module")
def fast_toy(tmp_path_factory) -> RunDirectory:
    return make_toy("fast", tmp_path_factory.mktemp("runs") / "fast")


def make_toy(preset, path) -> RunDirectory:
    toy = {"environment": "Catch-v0", "engine": "serial", "save_every": 2, "replay_every": 1}
    sizes = {
        "fast": {"streams": 2, "horizon": 60, "updates": 8, "hidden": 8},
        "classic": {"batch_size": 3, "updates": 8, "hidden": 8},
    }
    run = RunDirectory.create(
        path, load_preset(preset).updated(toy | sizes[preset], "test"), [].append
    )
    train(run)
    return run


@pytest.fixture(scope="module")
def pong() -> ChosenReplay:
    """An episode of the real game."""
    rng = np.random.default_rng(0)
    params = {"W1": rng.normal(size=(6400, 4)), "W2": rng.normal(size=4)}
    agent = Agent(params, "reinforce", PROTOCOLS["ALE/Pong-v5"], {"update": 0})
    return ChosenReplay(agent.play_episode(0), agent, is_own=True, title="Pong")


def film(show, path, **changes):
    """Make a film with the command's defaults."""
    defaults = {"has_overlay": False, "scale": 3, "speed": 1.0, "seconds": None}
    return make_film(show, path, **({"should_stop": lambda: False} | defaults | changes))


def decode(path):
    """Each picture [height, width, 3] with its time in milliseconds; also of GIF and WebP."""
    with Image.open(path) as image:
        pictures = []
        for index in range(image.n_frames):
            image.seek(index)
            image.load()
            pictures.append((np.asarray(image.convert("RGB")), image.info["duration"]))
    return pictures


def shown_at(pictures, milliseconds):
    """What a player shows at a time."""
    for picture, duration in pictures:
        milliseconds -= duration
        if milliseconds < 0:
            return picture
    raise AssertionError("the film is over")


def enlarge(frame, scale):
    return frame.repeat(scale, axis=0).repeat(scale, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["gif", "webp"])
@pytest.mark.parametrize("scale", [1, 3])
def test_pixels_are_those_of_the_emulator(toy, tmp_path, ending, scale):
    show, path = choose_replay(toy), tmp_path / f"film.{ending}"
    report = film(show, path, scale=scale)
    pictures, moments = decode(path), list(show.replay.watch())
    assert len({moment.frame.tobytes() for moment in moments}) > 10
    for number, moment in enumerate(moments):
        middle = 1000 * (number + 0.5) / report["frames_per_second"]
        np.testing.assert_array_equal(shown_at(pictures, middle), enlarge(moment.frame, scale))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["gif", "webp"])
@pytest.mark.parametrize("has_overlay", [False, True])
def test_pixels_of_pong_are_those_of_the_emulator(pong, tmp_path, ending, has_overlay):
    path = tmp_path / f"film.{ending}"
    film(pong, path, scale=2, seconds=5.0, has_overlay=has_overlay)
    pictures = decode(path)
    row, column = overlay.Panel(pong, 2).corner if has_overlay else (0, 0)
    for number, moment in zip(range(75), pong.replay.watch(), strict=False):
        picture = shown_at(pictures, 1000 * (number + 0.5) / 15)
        game = picture[row : row + 420, column : column + 320]
        np.testing.assert_array_equal(game, enlarge(moment.frame, 2))
        assert picture.shape[1] > 320 if has_overlay else picture.shape == (420, 320, 3)


def test_an_mp4_has_a_frame_for_each_step_and_stays_at_the_end(toy, tmp_path):
    show, path = choose_replay(toy), tmp_path / "film.mp4"
    report = film(show, path)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = list(container.decode(stream))
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height) == (480, 630)
        assert stream.average_rate == 15
        assert container.duration / 1e6 == pytest.approx(report["seconds"])
    assert len(frames) == report["frames"] == len(show.replay) + 15
    assert report["seconds"] == pytest.approx(len(frames) / 15)
    assert frames[0].time == 0.0
    content = path.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat"), "cannot be played while it loads"


@pytest.mark.slow
@pytest.mark.parametrize("has_overlay", [False, True])
def test_an_mp4_looks_like_what_was_put_in(pong, tmp_path, has_overlay):
    film(pong, tmp_path / "film.mp4", seconds=6.0, has_overlay=has_overlay)
    film(pong, tmp_path / "film.webp", seconds=6.0, has_overlay=has_overlay)
    pictures = decode(tmp_path / "film.webp")
    with av.open(str(tmp_path / "film.mp4")) as container:
        for number, frame in enumerate(container.decode(video=0)):
            meant = shown_at(pictures, 1000 * (number + 0.5) / 15)
            luma = 16 + 219 / 255 * (meant @ np.array([0.2126, 0.7152, 0.0722]))
            planes = frame.to_ndarray()
            off = np.abs(planes[: frame.height].astype(float) - luma)
            assert off.mean() < 1.5
            assert np.percentile(off, 99.9) < 30
    assert number == 89


def test_chroma_is_that_of_the_colours(tmp_path, pong):
    """Over the field, whose colour is one, decoded in floating point."""
    film(pong, tmp_path / "film.mp4", seconds=1.0)
    *_, moment = (moment for _, moment in zip(range(14), pong.replay.watch(), strict=False))
    with av.open(str(tmp_path / "film.mp4")) as container:
        *_, frame = container.decode(video=0)
        assert (frame.colorspace, frame.color_range) == (1, 1)  # BT.709, a video's range
    planes = frame.to_ndarray()
    y, b, r = (
        float(np.median(part)) for part in (planes[300:400, 150:300], planes[630:787], planes[788:])
    )
    y, b, r = (y - 16) / 219, (b - 128) / 224 * 1.8556, (r - 128) / 224 * 1.5748
    red, blue = y + r, y + b
    colour = 255 * np.array([red, (y - 0.2126 * red - 0.0722 * blue) / 0.7152, blue])
    np.testing.assert_allclose(colour, moment.frame[120, 80], atol=4)


def test_a_gif_keeps_delays_that_browsers_respect(fast_toy, tmp_path):
    for speed in (0.5, 1.0, 3.0, 7.0):
        path = tmp_path / f"{speed}.gif"
        report = film(choose_replay(fast_toy), path, speed=speed, scale=1)
        delays = [delay for _, delay in decode(path)]
        assert min(delays) >= 20
        assert sum(delays) / 1000 == pytest.approx(report["seconds"], abs=0.01)
        assert delays[-1] >= 1000 * 0.97  # the last moment stays


@pytest.mark.parametrize(
    ("name", "speed", "most", "rate", "every"),
    [
        ("ALE/Pong-v5", 1.0, 60, 15, 1),
        ("ALE/Pong-v5", 0.1, 60, Fraction(3, 2), 1),
        ("Pong-v0", 1.0, 60, 20, 1),
        ("PongNoFrameskip-v4", 1.0, 60, 60, 1),
        ("PongNoFrameskip-v4", 1.0, 50, 30, 2),
        ("ALE/Pong-v5", 10.0, 50, 50, 3),
    ],
)
def test_a_film_runs_at_the_speed_of_the_game(name, speed, most, rate, every):
    assert choose_pace(PROTOCOLS[name], speed, most) == (rate, every)
    assert rate * every * sum(PROTOCOLS[name].frame_skips) / 2 == pytest.approx(60 * speed)


def test_where_steps_are_left_out_the_last_one_is_shown(fast_toy, tmp_path):
    show, path = choose_replay(fast_toy), tmp_path / "film.webp"
    report = film(show, path, speed=13.0, scale=1)
    *_, last = show.replay.watch()
    pictures = decode(path)
    np.testing.assert_array_equal(pictures[-1][0], last.frame)
    assert report["frames"] < len(show.replay) / 3 + 62
    assert (report["steps"], report["is_whole"]) == (len(show.replay), True)


@pytest.mark.parametrize("ending", ["mp4", "gif", "webp"])
def test_a_film_ends_after_so_many_seconds(fast_toy, tmp_path, ending):
    show = choose_replay(fast_toy)
    report = film(show, tmp_path / f"film.{ending}", seconds=1.5, scale=1)
    assert (report["frames"], report["steps"], report["is_whole"]) == (22, 21, False)
    assert "the first 21" in describe_film(report)
    whole = len(show.replay) + 1
    report = film(show, tmp_path / f"film.{ending}", seconds=(whole + 3.01) / 15, scale=1)
    assert (report["frames"], report["is_whole"]) == (whole + 3, True)


@pytest.mark.parametrize("scale", [1, 2, 3, 4])
def test_the_panel_never_touches_the_game(toy, scale):
    show = choose_replay(toy, which="latest")
    panel, policy = overlay.Panel(show, scale), show.agent.make_network()
    canvas = np.full(panel.shape, overlay.PAPER, np.uint8)
    row, column = panel.corner
    game = canvas[row : row + 210 * scale, column : column + 160 * scale]
    assert game.shape == (210 * scale, 160 * scale)
    assert panel.shape[0] % 2 == panel.shape[1] % 2 == 0
    for moment in show.replay.watch():
        game[:] = enlarge(moment.screen % 191, scale)
        policy.follow(moment.screen, moment.action)
        panel.draw(canvas, moment, policy.explain())
        np.testing.assert_array_equal(game, enlarge(moment.screen % 191, scale))
    game[:] = overlay.PAPER
    assert canvas.min() >= overlay.FIRST_SLOT


@pytest.fixture
def written(monkeypatch) -> list[str]:
    """The lines of text that are drawn."""
    lines: list[str] = []
    draw = overlay._text
    monkeypatch.setattr(
        overlay, "_text", lambda text, *rest: (lines.append(text), draw(text, *rest))[1]
    )
    return lines


def test_the_panel_says_what_happens(toy, written):
    show = choose_replay(toy, which="latest")
    panel, policy = overlay.Panel(show, 3), show.agent.make_network()
    assert f"by the agent that plays, of update {show.agent.about['update']}" in written
    assert show.title in written
    for moment in show.replay.watch():
        written.clear()
        policy.follow(moment.screen, moment.action)
        explanation = policy.explain()
        panel.draw(np.zeros(panel.shape, np.uint8), moment, explanation)
        assert written[:3] == [*map(str, moment.points), f"{moment.step} of {len(show.replay)}"]
        assert [f"{p:.0%}" for p in explanation.probabilities] == [t for t in written if "%" in t]
        if explanation.value is not None:
            assert written[-1] == f"{explanation.value:+.2f}"


def test_whose_probabilities_are_shown_is_said(toy, written):
    show = choose_replay(toy)
    assert not show.is_own
    overlay.Panel(show, 3)
    (note,) = [line for line in written if "nearest agent that is kept" in line]
    assert note.endswith(f"of update {show.agent.about['update']}")


def test_the_action_that_was_taken_has_an_arrow_and_a_frame(toy):
    show = choose_replay(toy, which="latest")
    panel, policy = overlay.Panel(show, 3), show.agent.make_network()
    moment = next(show.replay.watch())
    policy.follow(moment.screen, moment.action)
    explanation = policy.explain()
    drawn = {}
    for action in (None, *policy.actions):
        canvas = np.zeros(panel.shape, np.uint8)
        panel.draw(canvas, dataclasses.replace(moment, action=action), explanation)
        drawn[action] = canvas == overlay.INK  # in black and white
    rows = []
    for action in policy.actions:
        places = np.argwhere(drawn[action] & ~drawn[None])
        assert len(places) > 300
        rows.append(places[:, 0].mean())
    assert np.all(np.diff(rows) > 20), "each has its own row"


def test_bars_are_as_long_as_the_probabilities(toy):
    show = choose_replay(toy, which="latest")
    panel = overlay.Panel(show, 3)
    moment = dataclasses.replace(next(show.replay.watch()), action=None)
    num = len(show.agent.make_network().actions)
    nothing = np.zeros((80, 80))
    probabilities = np.array([0.25, 0.75, 0.0][:num])
    explanation = Explanation(nothing.astype(np.uint8), probabilities, None, 0.0, nothing, 0.0)
    canvas = np.zeros(panel.shape, np.uint8)
    panel.draw(canvas, moment, explanation)
    lengths = [n for n in (canvas == overlay._BAR).sum(axis=1).tolist() if n]
    assert sorted(set(lengths)) == [84, 252]


@pytest.mark.parametrize("unit", range(2, 11))
def test_what_a_pixel_is_can_be_told_by_its_shape(unit):
    stamps = overlay._stamp_field(unit) != overlay.PAPER
    shapes = {state: stamps[state].tobytes() for state in (OFF, STAYED, APPEARED, VANISHED)}
    assert len(set(shapes.values())) == 4
    ways = overlay._stamp_saliency(unit) != overlay.PAPER
    up, down = ways[1:5], ways[5:]
    assert len({*map(bytes, up)}) == len({*map(bytes, down)}) == 1
    assert up[0].tobytes() != down[0].tobytes()


def test_saliency_is_graded_by_its_sign_and_size():
    saliency = np.zeros((80, 80))
    saliency[0, :5] = 2.0, 0.5, -2.0, -1.0, 0.01
    grades = overlay._grade(saliency)
    assert grades[0, :6].tolist() == [4, 1, 8, 6, 0, 0]
    assert not overlay._grade(np.zeros((80, 80))).any()


def test_a_long_title_is_cut(fast_toy, written):
    show = dataclasses.replace(choose_replay(fast_toy), title="x" * 300)
    overlay.Panel(show, 1)
    (title,) = [line for line in written if line.startswith("x")]
    assert title.endswith("x…")
    assert len(title) < 100


WAYS = {
    "newest": [], "update": ["--update", "3"], "best": ["--best"],
    "checkpoint": ["--checkpoint", "latest"], "milestone": ["--checkpoint", "4"],
    "fifth": ["--best", "--episode", "5"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("has_overlay", [False, True])
def test_the_command_makes_the_film_that_was_asked_for(toy, tmp_path, capsys, way, has_overlay):
    path = tmp_path / "film.webp"
    words = ["record", str(toy.path), "--out", str(path), "--scale", "1", "--json", *WAYS[way]]
    assert main([*words, *["--overlay"] * has_overlay]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["is_own"] == (way not in ("newest", "update"))
    assert report["bytes"] == path.stat().st_size
    *_, (last, _) = pictures = decode(path)
    assert last.shape[:2] == (report["height"], report["width"])
    assert report["has_overlay"] == has_overlay == (last.shape[1] > 160)
    assert sum(time for _, time in pictures) == pytest.approx(1000 * report["seconds"], abs=30)
    assert report["points"][1] - report["points"][0] == report["episode_return"]
    if way == "update":
        line = next(line for line in toy.replays.read() if line["episode"] == report["episode"])
        assert line["update"] == report["update"] == 3


def test_an_episode_is_found_by_its_number(fast_toy, tmp_path, capsys):
    line = list(fast_toy.replays.read())[2]
    words = ["record", str(fast_toy.path), "--episode", str(line["episode"]), "--json"]
    assert main([*words, "--out", str(tmp_path / "film.gif")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["episode"], report["steps"]) == (line["episode"], line["steps"])


def test_without_a_name_the_film_is_in_the_run(fast_toy, capsys):
    assert main(["record", str(fast_toy.path), "--scale", "1"]) == 0
    newest = list(fast_toy.replays.read())[-1]["episode"]
    path = fast_toy.path / "videos" / f"episode-{newest:06d}.mp4"
    assert path.is_file()
    assert capsys.readouterr().out.startswith(f"{path}: ")


BAD = {
    "ending": (["--out", "{}/film.avi"], "expected a film's ending for --out, got '.avi'"),
    "no ending": (["--out", "{}/film"], "which has no ending"),
    "folder": (["--out", "{}/folder.mp4"], "got the folder"),
    "file as folder": (["--out", "{}/file/film.gif"], "expected to write the film"),
    "scale 0": (["--scale", "0"], "expected --scale of at least 1, got 0"),
    "scale 11": (["--scale", "11"], "expected --scale from 1 to 10, got 11"),
    "speed 0": (["--speed", "0"], "expected --speed from 0.1 to 60, got 0"),
    "speed nan": (["--speed", "nan"], "expected --speed from 0.1 to 60, got nan"),
    "seconds": (["--seconds", "-1"], "expected --seconds from 0.1"),
    "seconds inf": (["--seconds", "inf"], "expected --seconds from 0.1"),
    "agent": (["--checkpoint", "77"], "got '77'; use best, latest or one of"),
    "episode": (["--episode", "99999"], "got no replay of episode 99999"),
    "both": (["--best", "--update", "1"], "expected --update or an agent, got both"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_done_is_said_in_one_line(fast_toy, tmp_path, capsys, case):
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "file").write_text("x")
    words, message = BAD[case]
    words = [word.format(tmp_path) for word in words]
    words += ["--out", f"{tmp_path}/film.mp4"] * ("--out" not in words)
    assert main(["record", str(fast_toy.path), *words]) in (1, 2)
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.mp4"]


@pytest.mark.parametrize("module", ["av", "PIL"])
def test_a_missing_extra_is_named(fast_toy, tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[video\]'"):
        film(choose_replay(fast_toy), tmp_path / "film.mp4")


ENDINGS = ["mp4", "gif", "webp"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("has_overlay", [False, True])
def test_a_stop_leaves_nothing_behind(fast_toy, tmp_path, ending, has_overlay):
    asked = []
    with pytest.raises(Interrupted):
        film(
            choose_replay(fast_toy),
            tmp_path / "a" / "b" / f"film.{ending}",
            has_overlay=has_overlay,
            should_stop=lambda: len(asked) > 20 or asked.append(1),
        )
    assert len(asked) == 21
    assert not list(tmp_path.iterdir())


def test_ctrl_c_leaves_nothing_behind(fast_toy, tmp_path, capsys, monkeypatch):
    watch = Replay.watch

    def watch_with_signal(replay):
        for moment in watch(replay):
            if moment.step == 10:
                signal.raise_signal(signal.SIGINT)
            yield moment

    monkeypatch.setattr(Replay, "watch", watch_with_signal)
    path = tmp_path / "film.mp4"
    assert main(["record", str(fast_toy.path), "--out", str(path)]) == 130
    assert capsys.readouterr().err == "pixelpong: interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_film_that_exists_is_replaced_by_a_whole_one_alone(fast_toy, tmp_path, ending):
    path = tmp_path / f"film.{ending}"
    path.write_text("older")
    show = choose_replay(fast_toy)
    with pytest.raises(Interrupted):
        film(show, path, should_stop=lambda: True)
    assert path.read_text() == "older"
    film(show, path)
    assert path.stat().st_size > 1000
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("room", [0, 1, 3, 6])
def test_a_full_disk_is_said_and_leaves_nothing(fast_toy, small_disk, ending, room):
    disk, page = small_disk("40k"), 4096
    (disk / "filler").write_bytes(bytes(40 * 1024 - room * page))

    def fill():
        message = r"expected to write the film .*(No space left|of \d+ frames)"
        with pytest.raises(RunError, match=message):
            film(choose_replay(fast_toy), disk / "new" / f"film.{ending}", has_overlay=True)

    fill()
    gc.collect()  # the error's traceback holds the file, and the disk is taken away
    assert [path.name for path in disk.iterdir()] == ["filler"]


def test_a_replay_that_comes_out_otherwise_makes_no_film(fast_toy, tmp_path):
    show = choose_replay(fast_toy)
    other = dataclasses.replace(show.replay, episode_return=show.replay.episode_return + 1)
    with pytest.raises(PixelpongError, match="to end with a return of"):
        film(dataclasses.replace(show, replay=other), tmp_path / "film.gif")
    assert not list(tmp_path.iterdir())


def test_a_film_that_was_cut_short_unheard_is_noticed(fast_toy, tmp_path):
    """The system may say that a disk is full only when a file is closed, and libav keeps that."""
    path, (make_writer, _) = tmp_path / "film.mp4", writers.FORMATS[".mp4"]
    palette = np.arange(768).astype(np.uint8).reshape(256, 3)
    with pytest.raises(RunError, match=r"got a file with \d+ of 30 frames"):
        with writers.write_film(path, make_writer, (64, 64), Fraction(15), palette) as writer:
            for number in range(30):
                writer.add(np.full((64, 64), number, np.uint8))
            whole = writer._container

            def close():
                whole.close()
                os.truncate(writer._path, writer._path.stat().st_size - 200)

            writer._container = types.SimpleNamespace(mux=whole.mux, close=close)
    assert not list(tmp_path.iterdir())
