"""Pictures of runs: what they show is what the files say, and every refusal is one line."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from pixelpong.agent.legend import ACTION_COLOURS, PIXEL_COLOURS
from pixelpong.agent.network import OFF
from pixelpong.errors import ConfigError, RunError
from pixelpong.faces import plots
from pixelpong.faces.plots import drawing
from pixelpong.faces.plots.curves import name_subjects
from pixelpong.faces.plots.running import running
from pixelpong.run.directory import RunDirectory

pytest.importorskip("matplotlib")


def figure_of(kind, *runs):
    with drawing.house_style():
        return plots.KINDS[kind](name_subjects(runs))


@pytest.fixture(scope="module", params=["fast", "classic"])
def toy(request, toy_runs):
    """A run with each of its pictures, drawn once."""
    run = RunDirectory.open(toy_runs[request.param])
    return run, {kind: figure_of(kind, run) for kind in plots.KINDS}


@pytest.fixture
def fast(toy_runs, tmp_path):
    """A copy that may be damaged."""
    return RunDirectory.open(shutil.copytree(toy_runs["fast"], tmp_path / "fast"))


# Files


@pytest.mark.parametrize(
    ("format", "begin"), [("png", b"\x89PNG\r"), ("svg", b"<?xml"), ("pdf", b"%PDF-")]
)
def test_a_picture_is_the_same_bytes_whatever_the_users_own_settings(toy_runs, format, begin):
    import matplotlib

    runs = [RunDirectory.open(toy_runs["fast"])]
    first = plots.draw_plot(runs, "curve", format)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 10}):
        assert plots.draw_plot(runs, "curve", format) == first
        assert matplotlib.rcParams["font.size"] == 30
    assert first.startswith(begin)
    assert not any(word in first for word in (b"Date", b"<dc:date>"))


def test_the_command_writes_in_the_run_or_the_file_that_is_named(fast, tmp_path, call, report):
    default, file = fast.path / "plots/curve.png", tmp_path / "health.svg"
    assert call("plot", fast.path) == (0, f"{default}\n", "")
    assert report("plot", fast.path, "--kind", "health", "--out", file) == {"file": str(file)}
    assert (default.is_file(), file.is_file()) == (True, True)


@pytest.mark.parametrize("name", ["_hidden", "a$b$c", "名前", "fast"])
def test_any_name_can_stand_in_a_legend_and_two_of_one_name_are_told_apart(
    toy_runs, tmp_path, name
):
    odd = RunDirectory.open(shutil.copytree(toy_runs["fast"], tmp_path / name))
    figure = figure_of("curve", odd, RunDirectory.open(toy_runs["fast"]))
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len({*labels}) == 2
    assert labels[0].strip().replace("\\$", "$") == (str(odd.path) if name == "fast" else name)
    with drawing.house_style():
        drawing.render(figure, "png")


def test_a_picture_that_has_no_room_leaves_what_was_there_and_nothing_else(fast, small_disk):
    file = small_disk("100k") / "curve.png"
    plots.plot([fast], "curve", file)
    before = file.read_bytes()
    with pytest.raises(RunError, match=r"\Aexpected to write [^\n]*No space left[^\n]*\Z"):
        plots.plot([fast], "health", file)
    assert [(each.name, each.read_bytes()) for each in file.parent.iterdir()] == [
        ("curve.png", before)
    ]


# Refusals


def test_what_is_not_known_is_one_line(fast, make_run, call, tmp_path, monkeypatch):
    empty = make_run("empty").path
    for words, code, message in (
        (f"{fast.path} --kind curves", 2, "expected --kind to be one of curve, health"),
        (f"{fast.path} --out curve.jpeg", 2, "expected a format, got 'jpeg'; use png, svg"),
        (f"{fast.path} --out curve", 2, "expected a format, got ''"),
        (f"{fast.path} --out missing/curve.png", 1, "none; make it first"),
        (f"{empty}", 1, "got none; train it"),
    ):
        got, _, err = call("plot", *words.split())
        assert (got, message in err, err.count("\n")) == (code, True, 1), err
    assert not (tmp_path / "missing").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[plot\]'"):
        plots.plot([fast], "curve", None)


def test_damaged_lines_do_no_harm(fast):
    lines = (
        {"update": 99, "steps": "many", "entropy": [], "timing": 3},
        {"update": 99, "steps": 10**400, "entropy": True, "timing": {"busy_share": None}},
        {"update": 99, "steps": 1, "episode_return": 1, "point_ends": [3, 2], "point_rewards": [1]},
        {"update": 12, "mean_return": 1, "ci95": "wide", "episode_return": {}},
    )
    for file in (fast.metrics, fast.episodes, fast.evaluations):
        with file.path.open("a") as out:
            out.writelines(json.dumps(line) + "\nrubbish\n[]\n" for line in lines)
    for kind in plots.KINDS:
        assert figure_of(kind, fast).axes


# What they show


def test_running_mean_and_band_against_a_slow_oracle():
    values = np.random.default_rng(0).normal(size=57)
    result = running(values, 10, np.repeat(np.arange(19), 3))
    assert result.places.tolist() == list(range(3, 58, 3))
    pieces = [values[max(0, place - 10) : place] for place in result.places]
    assert result.mean == pytest.approx([sum(piece) / len(piece) for piece in pieces])
    for band, share in ((result.low, 0.1), (result.high, 0.9)):
        assert band == pytest.approx([np.quantile(piece, share) for piece in pieces])


def test_the_curve_ends_where_the_metrics_say_and_has_the_evaluations(toy):
    run, figures = toy
    axes = figures["curve"].axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    last = list(run.metrics.read())[-1]
    x, y = (each[-1] for each in lines["mean of the last 100 episodes"].get_data())
    unit, _ = drawing.scale_of(last["steps"])
    assert (x, y) == (pytest.approx(last["steps"] / unit), pytest.approx(last["mean_return_100"]))
    (errors,) = (each for each in axes.containers if hasattr(each, "has_yerr"))
    drawn = errors.lines[0].get_ydata().tolist()
    assert drawn == [line["mean_return"] for line in run.evaluations.read()]


def test_the_curve_has_room_for_the_estimate(fast):
    """It runs ahead of the episodes, which have all been lost here."""
    fast.metrics.append(list(fast.metrics.read())[-1] | {"update": 99, "estimated_return": 19.5})
    low, high = figure_of("curve", fast).axes[0].get_ylim()
    assert (low < -21, 19.5 < high < 22) == (True, True)


def test_health_has_a_panel_for_what_the_algorithm_has(toy):
    run, figures = toy
    titles = {axes.get_title() for axes in figures["health"].axes}
    assert titles >= {"entropy of the policy, nats", "norm of the gradient", "steps per second"}
    of_ppo = {"KL divergence of an update", "squared error of the value", "learning rate"}
    assert titles & of_ppo == (of_ppo if run.config.preset == "fast" else set())


def test_letters_can_be_read_and_lines_are_told_apart_without_colours(toy):
    for figure in toy[1].values():
        for text in figure.findobj(lambda each: hasattr(each, "get_fontsize")):
            assert text.get_fontsize() >= 9, text.get_text()
    first = [drawing.line_style(number) for number in range(6)]
    assert len({str(look["linestyle"]) for look in first}) == 6
    assert len({look["color"] for look in first}) == 6


@pytest.mark.parametrize("colours", [ACTION_COLOURS, {OFF: "#ffffff"} | PIXEL_COLOURS])
def test_fillings_differ_in_a_grey_print(colours):
    def lightness(colour):
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    shades = sorted(map(lightness, colours.values()))
    assert min(np.diff(shades)) > 0.15
