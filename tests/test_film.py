"""Films: the emulator's very pixels, at the game's speed, in a file that is whole or not there."""

from __future__ import annotations

import dataclasses
import gc
import json
import signal
import sys
from fractions import Fraction

import numpy as np
import pytest

from pixelpong.agent.choice import ChosenReplay, find_game
from pixelpong.agent.explain import explain
from pixelpong.agent.file import Agent
from pixelpong.agent.legend import ACTION_COLOURS, ACTION_NAMES, PIXEL_COLOURS, PIXEL_NAMES
from pixelpong.agent.network import APPEARED, OFF, STAYED, VANISHED
from pixelpong.config.protocols import PROTOCOLS
from pixelpong.errors import ConfigError, Interrupted, RunError
from pixelpong.faces.cli import main
from pixelpong.faces.film import choose_pace, describe_film, make_film, overlay
from pixelpong.play.replay import Replay
from pixelpong.run.directory import RunDirectory

av = pytest.importorskip("av", reason="films need the extra [video]")
Image = pytest.importorskip("PIL.Image", reason="films need the extra [video]")

ENDINGS = ["mp4", "gif", "webp"]


@pytest.fixture(params=["fast", "classic"])
def toy(request, toy_runs) -> RunDirectory:
    return RunDirectory.open(toy_runs[request.param], [].append)


@pytest.fixture
def fast_toy(toy_runs) -> RunDirectory:
    return RunDirectory.open(toy_runs["fast"], [].append)


@pytest.fixture(scope="module")
def pong() -> ChosenReplay:
    """An episode of the real game."""
    rng = np.random.default_rng(0)
    params = {"W1": rng.normal(size=(6400, 4)), "W2": rng.normal(size=4)}
    agent = Agent(params, "reinforce", PROTOCOLS["ALE/Pong-v5"], {"update": 0})
    return ChosenReplay(agent.play_episode(0), agent, title="Pong")


def film(chosen, path, **changes):
    """Make a film with the command's defaults."""
    defaults = {"has_overlay": False, "scale": 3, "speed": 1.0, "seconds": None}
    return make_film(chosen, path, **({"should_stop": lambda: False} | defaults | changes))


def decode(path):
    """Each picture [height, width, 3] with its time in milliseconds; of GIF and WebP."""
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


# What is in the file


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["gif", "webp"])
@pytest.mark.parametrize(
    ("game", "scale", "has_overlay"),
    [("toy", 1, False), ("toy", 3, True), ("pong", 2, False), ("pong", 2, True)],
)
def test_pixels_are_those_of_the_emulator(
    fast_toy, pong, tmp_path, ending, game, scale, has_overlay
):
    chosen, path = pong if game == "pong" else find_game(fast_toy), tmp_path / f"film.{ending}"
    film(chosen, path, scale=scale, seconds=5.0, has_overlay=has_overlay)
    pictures, seen = list(decode(path)), set()
    column, row = overlay.Panel(chosen, scale).corner if has_overlay else (0, 0)
    for number, moment in zip(range(75), chosen.replay.watch(), strict=False):
        picture = shown_at(pictures, 1000 * (number + 0.5) / 15)
        frame = picture[row : row + 210 * scale, column : column + 160 * scale]
        enlarged = moment.frame.repeat(scale, axis=0).repeat(scale, axis=1)
        np.testing.assert_array_equal(frame, enlarged)
        assert picture.shape[1] > 160 * scale or not has_overlay
        seen.add(moment.frame.tobytes())
    assert len(seen) > 10


@pytest.mark.slow
def test_an_mp4_has_a_frame_for_each_step_and_stays_at_the_end(toy, tmp_path):
    chosen, path = find_game(toy), tmp_path / "film.mp4"
    report = film(chosen, path)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = list(container.decode(stream))
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height) == (480, 630)
        assert stream.average_rate == 15
        assert container.duration / 1e6 == pytest.approx(report["seconds"])
    assert len(frames) == report["frames"] == len(chosen.replay) + 15
    assert report["seconds"] == pytest.approx(len(frames) / 15)
    assert frames[0].time == 0.0
    content = path.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat"), "cannot be played while it loads"


@pytest.mark.slow
@pytest.mark.parametrize("has_overlay", [False, True])
def test_an_mp4_looks_like_what_was_put_in(pong, tmp_path, has_overlay):
    film(pong, tmp_path / "film.mp4", seconds=6.0, has_overlay=has_overlay)
    film(pong, tmp_path / "film.webp", seconds=6.0, has_overlay=has_overlay)
    pictures = list(decode(tmp_path / "film.webp"))
    with av.open(str(tmp_path / "film.mp4")) as container:
        for number, frame in enumerate(container.decode(video=0)):
            meant = shown_at(pictures, 1000 * (number + 0.5) / 15)
            luma = 16 + 219 / 255 * (meant @ np.array([0.2126, 0.7152, 0.0722]))
            off = np.abs(frame.to_ndarray()[: frame.height].astype(float) - luma)
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


@pytest.mark.parametrize("speed", [0.5, 1.0, 3.0, 7.0])
@pytest.mark.slow
def test_a_gif_keeps_delays_that_browsers_respect(fast_toy, tmp_path, speed):
    report = film(find_game(fast_toy), tmp_path / "film.gif", speed=speed, scale=1)
    delays = [delay for _, delay in decode(tmp_path / "film.gif")]
    assert min(delays) >= 20
    assert sum(delays) / 1000 == pytest.approx(report["seconds"], abs=0.01)


@pytest.mark.parametrize("ending", ["gif", "webp"])
@pytest.mark.parametrize("speed", [1.0, 13.0])
def test_the_last_moment_is_shown_and_stays(fast_toy, tmp_path, ending, speed):
    chosen, path = find_game(fast_toy), tmp_path / f"film.{ending}"
    report = film(chosen, path, speed=speed, scale=1)
    *_, last = chosen.replay.watch()
    pictures = list(decode(path))
    for milliseconds in (20, 970):
        picture = shown_at(pictures, sum(time for _, time in pictures) - milliseconds)
        np.testing.assert_array_equal(picture, last.frame)
    assert report["frames"] < len(chosen.replay) / (3 if speed > 1 else 1) + 62
    assert (report["steps"], report["is_whole"]) == (len(chosen.replay), True)


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


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_film_ends_after_so_many_seconds(fast_toy, tmp_path, ending):
    chosen = find_game(fast_toy)
    whole = len(chosen.replay) + 1
    for seconds, frames, steps, is_whole in (
        (1.5, 22, 21, False),
        ((whole + 3.01) / 15, whole + 3, whole - 1, True),
    ):
        report = film(chosen, tmp_path / f"film.{ending}", seconds=seconds, scale=1)
        told = report["frames"], report["steps"], report["is_whole"]
        assert told == (frames, steps, is_whole)
        assert is_whole or "the first 21" in describe_film(report)


# The panel


@pytest.fixture
def explained(toy):
    """A replay, its moments, and what the agent that played it makes of each."""
    chosen = find_game(toy, "latest")
    return chosen, list(explain(chosen.replay, chosen.agent))


@pytest.fixture
def written(monkeypatch) -> list[str]:
    """The lines of text that are drawn."""
    lines: list[str] = []
    draw = overlay.draw_text

    def note(text, size, slot):
        lines.append(text)
        return draw(text, size, slot)

    monkeypatch.setattr(overlay, "draw_text", note)
    return lines


@pytest.mark.parametrize("scale", [1, 2, 3, 4])
def test_the_game_hides_nothing_of_the_panel(explained, scale):
    chosen, steps = explained
    panel = overlay.Panel(chosen, scale)
    column, row = panel.corner
    assert panel.size[0] % 2 == panel.size[1] % 2 == 0
    for moment, explanation in steps[::5]:
        picture = np.asarray(panel.draw(moment, explanation))
        assert picture.shape == panel.size[::-1]
        game = picture[row : row + 210 * scale, column : column + 160 * scale]
        assert game.shape == (210 * scale, 160 * scale)
        assert (game == overlay.PAPER).all()


def test_the_panel_says_what_happens_in_the_words_of_the_legend(explained, written):
    chosen, steps = explained
    panel, actions = overlay.Panel(chosen, 3), chosen.agent.make_network().actions
    assert f"by the agent of update {chosen.agent.about['update']}" in written
    sees_all = chosen.agent.algorithm == "ppo"
    seen = {name for state, name in PIXEL_NAMES.items() if sees_all or state != STAYED}
    assert {chosen.title, "for up", "for down", *seen} <= set(written)
    for moment, explanation in steps:
        written.clear()
        panel.draw(moment, explanation)
        steps_of = f"{moment.step} of {len(chosen.replay)}"
        assert written[:3] == [*map(str, moment.points), steps_of]
        assert {ACTION_NAMES[action] for action in actions} <= set(written)
        chances = [f"{p:.0%}" for p in explanation.probabilities]
        assert list(dict.fromkeys(t for t in written if "%" in t)) == list(dict.fromkeys(chances))
        if explanation.value is not None:
            assert written[-1] == f"{explanation.value:+.2f}"


def test_the_panel_has_the_colours_of_the_legend():
    colours = overlay.list_colours()
    assert len(colours) < 256, "one is left for a GIF"
    for places, legend in ((overlay.ACTIONS, ACTION_COLOURS), (overlay.PIXELS, PIXEL_COLOURS)):
        assert {key: "#" + bytes(colours[place]).hex() for key, place in places.items()} == legend
    field, saliency = overlay.stamp_field(3), overlay.stamp_saliency(3)
    assert {state: field[state].max() for state in PIXEL_NAMES} == overlay.PIXELS
    for action, place in overlay.ACTIONS.items():
        if ACTION_NAMES[action] != "stay":
            strongest = saliency[4 if ACTION_NAMES[action] == "up" else 8].max()
            np.testing.assert_array_equal(colours[strongest], colours[place])


def test_the_action_that_was_taken_has_an_arrow_and_a_frame(explained):
    chosen, ((moment, explanation), *_) = explained
    panel, actions, rows = overlay.Panel(chosen, 3), chosen.agent.make_network().actions, []
    drawn = {
        action: np.asarray(panel.draw(dataclasses.replace(moment, action=action), explanation))
        == overlay.INK  # in black and white
        for action in (None, *actions)
    }
    for action in actions:
        places = np.argwhere(drawn[action] & ~drawn[None])
        assert len(places) > 300
        rows.append(places[:, 0].mean())
    assert np.all(np.diff(rows) > 20), "each has its own row"


def test_bars_are_as_long_as_the_probabilities(explained):
    chosen, ((moment, explanation), *_) = explained
    actions = chosen.agent.make_network().actions
    probabilities = np.array([0.25, 0.75, 0.0][: len(actions)])
    nothing = np.zeros((80, 80))
    explanation = dataclasses.replace(
        explanation, probabilities=probabilities, field=nothing.astype(np.uint8), saliency=nothing
    )
    picture = np.asarray(overlay.Panel(chosen, 3).draw(moment, explanation))[:400]
    for action, p in zip(actions, probabilities, strict=True):
        assert (picture == overlay.ACTIONS[action]).sum(axis=1).max() == 336 * p


@pytest.mark.parametrize("scale", [1, 2, 3, 4])
def test_the_middle_of_the_value_is_marked(toy_runs, scale):
    chosen = find_game(RunDirectory.open(toy_runs["fast"]), "latest")
    moment, explanation = next(explain(chosen.replay, chosen.agent))
    explanation, unit = dataclasses.replace(explanation, value=0.5), max(scale, 2)
    picture = np.asarray(overlay.Panel(chosen, scale).draw(moment, explanation))
    bar = picture[105 * unit : 115 * unit, 160 * scale + 40 * unit : 160 * scale + 152 * unit]
    assert (bar == overlay.INK).all(axis=0).sum() in (unit // 2, unit - unit // 2)


@pytest.mark.parametrize("unit", range(2, 11))
def test_what_a_pixel_is_can_be_told_by_its_shape(unit):
    stamps = overlay.stamp_field(unit) != overlay.PAPER
    shapes = {state: stamps[state].tobytes() for state in (OFF, STAYED, APPEARED, VANISHED)}
    assert len(set(shapes.values())) == 4
    ways = overlay.stamp_saliency(unit) != overlay.PAPER
    up, down = ways[1:5], ways[5:]
    assert len({*map(bytes, up)}) == len({*map(bytes, down)}) == 1
    assert up[0].tobytes() != down[0].tobytes()


def test_saliency_is_graded_by_its_sign_and_size():
    saliency = np.zeros((80, 80))
    saliency[0, :5] = 2.0, 0.5, -2.0, -1.0, 0.01
    assert overlay.grade(saliency)[0, :6].tolist() == [4, 1, 8, 6, 0, 0]
    assert not overlay.grade(np.zeros((80, 80))).any()


@pytest.mark.slow
def test_a_long_title_is_cut(fast_toy, written):
    overlay.Panel(dataclasses.replace(find_game(fast_toy), title="x" * 300), 1)
    title = [line for line in written if line.startswith("x")][-1]
    assert title.endswith("x…")
    assert len(title) < 100


# The command

WAYS = {
    "best": [], "latest": ["--checkpoint", "latest"], "milestone": ["--checkpoint", "0"],
    "fifth": ["--sampled", "--episode", "5"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_command_makes_the_film_that_was_asked_for(fast_toy, tmp_path, capsys, way):
    path = tmp_path / "film.webp"
    words = ["record", str(fast_toy.path), "--out", str(path), "--scale", "1", "--json"]
    has_overlay = way in ("milestone", "best")
    assert main([*words, *WAYS[way], *["--overlay"] * has_overlay]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["update"] == {"latest": 12, "milestone": 0}.get(way, report["update"])
    assert report["episode"] == (5 if way == "fifth" else 0)
    assert report["bytes"] == path.stat().st_size
    *_, (last, _) = pictures = list(decode(path))
    assert last.shape[:2] == (report["height"], report["width"])
    assert report["has_overlay"] == has_overlay == (last.shape[1] > 160)
    assert sum(time for _, time in pictures) == pytest.approx(1000 * report["seconds"], abs=30)
    assert report["points"][1] - report["points"][0] == report["episode_return"]


def test_without_a_name_the_film_is_in_the_run(fast_toy, capsys):
    assert main(["record", str(fast_toy.path), "--checkpoint", "4", "--scale", "1"]) == 0
    path = fast_toy.path / "videos" / "update-000004-episode-0.mp4"
    assert path.is_file()
    assert capsys.readouterr().out.startswith(f"{path}: ")


BAD = {
    "ending": (["--out", "{}/film.avi"], "expected a film's ending for --out, got '.avi'"),
    "no ending": (["--out", "{}/film"], "which has no ending"),
    "folder": (["--out", "{}/folder.mp4"], "got the folder"),
    "file as folder": (["--out", "{}/file/film.gif"], "expected to write "),
    "scale 0": (["--scale", "0"], "expected --scale to be a whole number of at least 1, got 0"),
    "scale 11": (["--scale", "11"], "expected --scale from 1 to 10, got 11"),
    "speed 0": (["--speed", "0"], "expected --speed from 0.1 to 60, got 0"),
    "speed nan": (["--speed", "nan"], "expected --speed to be a number, got nan"),
    "seconds": (["--seconds", "-1"], "expected --seconds from 0.1"),
    "seconds inf": (["--seconds", "inf"], "expected --seconds to be a number, got inf"),
    "agent": (["--checkpoint", "77"], "got '77'; use best, latest or one of"),
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


@pytest.mark.parametrize("bad", [{"speed": np.nan}, {"seconds": np.inf}, {"scale": 0}])
def test_python_is_refused_what_the_command_is(fast_toy, tmp_path, bad):
    (name,) = bad
    with pytest.raises(ConfigError, match=f"expected --{name} from "):
        film(find_game(fast_toy), tmp_path / "film.mp4", **bad)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["av", "PIL"])
def test_a_missing_extra_is_named(fast_toy, tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[video\]'"):
        film(find_game(fast_toy), tmp_path / "film.mp4")


# Whole or none


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.slow
def test_a_stop_leaves_what_was_there_and_a_whole_film_replaces_it(fast_toy, tmp_path, ending):
    chosen, path, asked = find_game(fast_toy), tmp_path / f"film.{ending}", []
    path.write_text("older")
    for each in (tmp_path / "a" / "b" / path.name, path):
        asked.clear()
        with pytest.raises(Interrupted):
            film(
                chosen,
                each,
                has_overlay=each == path,
                should_stop=lambda: len(asked) > 20 or asked.append(1),
            )
        assert len(asked) == 21
        assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "older"
    film(chosen, path, has_overlay=True)
    assert path.stat().st_size > 1000
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


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


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("room", [0, 1, 3, 6])
def test_a_full_disk_is_said_and_leaves_nothing(fast_toy, small_disk, ending, room):
    disk, page = small_disk("40k"), 4096
    (disk / "filler").write_bytes(bytes(40 * 1024 - room * page))
    with pytest.raises(RunError, match="expected to write .*No space left"):
        film(find_game(fast_toy), disk / "new" / f"film.{ending}", has_overlay=True)
    gc.collect()  # the error's traceback holds the file, and the disk is taken away
    assert [path.name for path in disk.iterdir()] == ["filler"]
