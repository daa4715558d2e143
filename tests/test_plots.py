"""Pictures of runs: what they show is what the files say, and every refusal is one line."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from pixelpong.agent.choice import find_game
from pixelpong.agent.explain import explain_all
from pixelpong.agent.legend import ACTION_COLOURS, ACTION_NAMES, PIXEL_COLOURS, PIXEL_NAMES
from pixelpong.agent.network import APPEARED, OFF, STAYED, VANISHED
from pixelpong.env import features
from pixelpong.env.preprocess import preprocess
from pixelpong.errors import CheckpointError, ConfigError, PixelpongError, RunError
from pixelpong.faces.cli import main
from pixelpong.faces.plots import KINDS, OVERLAID, SINGLE, draw_one, draw_plots, drawing
from pixelpong.faces.plots import weights as plots_weights
from pixelpong.faces.plots.subjects import name_subjects
from pixelpong.items import DOWN, UP
from pixelpong.run.directory import RunDirectory
from pixelpong.run.table import read_episodes, read_evaluations, read_metrics, running

pytest.importorskip("matplotlib")


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def copy(toy_runs, tmp_path, warnings):
    """Copy a trained toy."""
    return lambda preset: RunDirectory.open(
        shutil.copytree(toy_runs[preset], tmp_path / preset), warnings.append
    )


@pytest.fixture(params=["fast", "classic"])
def run(request, copy) -> RunDirectory:
    return copy(request.param)


@pytest.fixture
def fast(copy) -> RunDirectory:
    return copy("fast")


def subject_of(run):
    return name_subjects([run])[0]


def figure_of(run, kind, *others):
    subjects = name_subjects([run, *others])
    with drawing.house_style():
        return OVERLAID[kind](subjects) if kind in OVERLAID else SINGLE[kind](subjects[0])


# Files


@pytest.mark.slow
def test_all_pictures_have_their_files_and_letters_that_can_be_read(
    run, tmp_path, warnings, monkeypatch
):
    from matplotlib.figure import Figure

    saved, save = [], Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda *args, **how: saved.append(args[0]) or save(*args, **how)
    )
    files = draw_plots([run], tmp_path / "out", ["all"], ["png", "svg"])
    assert [file.name for file in files] == [f"{k}.{f}" for k in KINDS for f in ("png", "svg")]
    assert sorted((tmp_path / "out").iterdir()) == sorted(files)
    for file, figure in zip(files, saved, strict=True):
        begin = file.read_bytes()[:5]
        assert begin == (b"\x89PNG\r" if file.suffix == ".png" else b"<?xml")
        for text in figure.findobj(lambda each: hasattr(each, "get_fontsize")):
            assert text.get_fontsize() >= 9, (file, text.get_text())
    assert warnings == []


@pytest.mark.slow
@pytest.mark.parametrize("format", drawing.FORMATS)
def test_the_same_picture_is_the_same_bytes_whatever_the_users_own_settings(fast, format):
    import matplotlib

    first = draw_one([subject_of(fast)], "curve", format)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 10}):
        assert draw_one([subject_of(fast)], "curve", format) == first
        assert matplotlib.rcParams["font.size"] == 30
    assert b"<dc:date>" not in first


@pytest.mark.slow
def test_several_runs_share_a_picture_where_they_can(toy_runs, tmp_path):
    runs = [RunDirectory.open(path) for path in toy_runs.values()]
    files = draw_plots(runs, tmp_path / "out", ["curve", "weights"], ["png"])
    assert [file.name for file in files] == ["curve.png", "weights-fast.png", "weights-classic.png"]


def test_runs_of_one_name_are_told_apart(toy_runs, tmp_path):
    paths = [shutil.copytree(toy_runs["fast"], tmp_path / name / "run") for name in "ab"]
    subjects = name_subjects([RunDirectory.open(path) for path in paths])
    assert [subject.name for subject in subjects] == ["a/run", "b/run"]
    assert [subject.file_name for subject in subjects] == ["a-run", "b-run"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["_hidden", "a$b$c", "a^{b", "名前", "\N{GRINNING FACE}"])
def test_any_name_can_stand_in_a_legend(toy_runs, tmp_path, name):
    odd = RunDirectory.open(shutil.copytree(toy_runs["fast"], tmp_path / name))
    plain = RunDirectory.open(toy_runs["fast"])
    figure = figure_of(odd, "curve", plain)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(labels) == 2
    assert labels[0].strip().replace("\\$", "$") == name
    with drawing.house_style():
        drawing.render(figure, "png")


@pytest.mark.slow
def test_pictures_that_have_no_room_leave_what_was_there_and_nothing_else(fast, small_disk):
    folder = small_disk("160k") / "plots"
    draw_plots([fast], folder, ["curve"], ["png"])
    before = (folder / "curve.png").read_bytes()
    with pytest.raises(RunError, match="expected to write pictures to .*No space left") as caught:
        draw_plots([fast], folder, ["curve", "points"], ["png"])
    assert "\n" not in str(caught.value)
    assert [file.name for file in folder.iterdir()] == ["curve.png"]
    assert (folder / "curve.png").read_bytes() == before


# Refusals


@pytest.mark.parametrize(
    ("kinds", "formats", "message"),
    [
        (["curv"], ["png"], "expected a kind of picture, got 'curv'; did you mean 'curve'\\?"),
        (["curve", ""], ["png"], "expected a kind of picture, got ''; use curve, points"),
        (["curve"], ["pgn"], "expected a format, got 'pgn'; did you mean 'png'\\?"),
        (["curve"], ["jpeg"], "expected a format, got 'jpeg'; use png, svg"),
    ],
)
def test_what_is_not_known_is_refused_before_anything_is_drawn(
    fast, tmp_path, kinds, formats, message
):
    with pytest.raises(ConfigError, match=message):
        draw_plots([fast], tmp_path / "out", kinds, formats)
    assert not (tmp_path / "out").exists()


def test_without_matplotlib_there_is_one_line_that_names_the_extra(fast, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[plot\]'"):
        draw_plots([fast], tmp_path / "out", ["all"], ["png"])


@pytest.mark.parametrize("kind", [*KINDS, "all"])
def test_a_run_that_has_nothing_at_all_is_refused_in_one_line(make_run, tmp_path, kind):
    message = "expected metrics in .*, got none; train it" if kind in OVERLAID else "^expected "
    with pytest.raises(PixelpongError, match=message) as caught:
        draw_plots([make_run()], tmp_path / "out", [kind], ["png"])
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_all_leaves_out_what_a_run_cannot_give_and_warns(fast, tmp_path, warnings):
    fast.metrics.path.unlink()
    files = draw_plots([fast], tmp_path / "out", ["all"], ["png"])
    assert [file.stem for file in files] == list(SINGLE)
    assert [line.split(":")[0] for line in warnings] == [f"no picture {k}" for k in OVERLAID]


def test_the_best_agent_plays(run):
    assert "greedy episode" in figure_of(run, "episode").get_suptitle()


def test_without_agents_an_episode_is_refused_in_one_line(run):
    shutil.rmtree(run.path / "checkpoints")
    shutil.rmtree(run.path / "milestones")
    for kind in SINGLE:
        with pytest.raises(CheckpointError) as caught:
            figure_of(run, kind)
        assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        {"update": 99},
        {"update": 99, "steps": "many", "entropy": [], "timing": 3},
        {"update": 99, "steps": 10**400, "entropy": True, "timing": {"busy_share": None}},
        {"update": 99, "steps": 1, "episode_return": 1, "point_ends": [3, 2], "point_rewards": [1]},
        {"update": 99, "steps": 1, "episode_return": 1, "point_ends": [3, 2],
         "point_rewards": [1, 1]},
        {"update": 12, "mean_return": 1, "ci95": [5, 9]},
        {"update": 12, "mean_return": 1, "ci95": "wide", "episode_return": {}},
    ],
)  # fmt: skip
def test_damaged_lines_do_no_harm(fast, line):
    for file in (fast.metrics, fast.episodes, fast.evaluations):
        with file.path.open("a") as out:
            out.write(json.dumps(line) + "\nrubbish\n[]\n")
    for kind in OVERLAID:
        assert figure_of(fast, kind).axes


# What they show


def test_columns_are_the_lines_of_the_files(run):
    lines = list(run.metrics.read())
    metrics = read_metrics(run)
    assert metrics["steps"].dtype == np.int64
    assert metrics["steps"].tolist() == [line["steps"] for line in lines]
    rates = [line["timing"]["steps_per_second"] for line in lines]
    assert metrics["steps_per_second"].tolist() == rates
    assert np.isnan(metrics["estimated_return"][0])
    episodes = read_episodes(run, metrics)
    by_update = {line["update"]: line["steps"] for line in lines}
    own = list(run.episodes.read())
    assert episodes.returns.tolist() == [line["episode_return"] for line in own]
    assert episodes.steps.tolist() == [by_update[line["update"]] for line in own]
    assert episodes.rally_lengths.sum() == sum(line["point_ends"][-1] + 1 for line in own)
    assert episodes.is_won.sum() == sum(line["points_won"] for line in own)
    evaluations = list(run.evaluations.read())
    assert len(evaluations) > 0
    assert read_evaluations(run, metrics).tolist() == [
        [by_update[line["update"]], line["mean_return"], *line["ci95"]] for line in evaluations
    ]


def test_running_mean_and_band_against_a_slow_oracle():
    values = np.random.default_rng(0).normal(size=57)
    at = np.repeat(np.arange(19), 3)
    result = running(values, 10, at)
    assert result.places.tolist() == list(range(3, 58, 3))
    pieces = [values[max(0, place - 10) : place] for place in result.places]
    assert result.mean == pytest.approx([sum(piece) / len(piece) for piece in pieces])
    for band, share in ((result.low, 0.1), (result.high, 0.9)):
        assert band == pytest.approx([np.quantile(piece, share) for piece in pieces])


def test_the_curve_ends_where_the_metrics_say_and_has_the_evaluations(run):
    axes = figure_of(run, "curve").axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    last = list(run.metrics.read())[-1]
    x, y = (each[-1] for each in lines["mean of the last 100 episodes"].get_data())
    assert y == pytest.approx(last["mean_return_100"])
    unit, _ = drawing.scale_of(last["steps"])
    assert x == pytest.approx(last["steps"] / unit)
    assert len(axes.collections) > 0  # the band
    assert "greedy evaluation" in [text.get_text() for text in axes.get_legend().get_texts()]
    (errors,) = (each for each in axes.containers if hasattr(each, "has_yerr"))
    drawn = errors.lines[0].get_ydata().tolist()
    assert drawn == [line["mean_return"] for line in run.evaluations.read()]


def test_the_curve_of_pong_has_room_for_the_estimate(fast):
    """It runs ahead of the episodes, which have all been lost here."""
    config = json.loads((fast.path / "config.json").read_text("utf-8"))
    config["config"]["environment"] = "ALE/Pong-v5"
    del config["sha256"]
    (fast.path / "config.json").write_text(json.dumps(config), "utf-8")
    lines = [line | {"estimated_return": 19.5} for line in fast.metrics.read()]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (fast.path / "metrics.jsonl").write_text(text, "utf-8")
    axes = figure_of(RunDirectory.open(fast.path), "curve").axes[0]
    assert axes.get_ylim()[1] > 19.5


def test_health_has_a_panel_for_what_the_algorithm_has(run):
    titles = {axes.get_title() for axes in figure_of(run, "health").axes}
    common = {"entropy of the policy, nats", "norm of the gradient", "steps per second",
              "share of time workers play"}  # fmt: skip
    of_ppo = {"KL divergence of an update", "share of steps clipped", "squared error of the value",
              "learning rate"}  # fmt: skip
    assert common <= titles
    assert of_ppo <= titles if run.config.preset == "fast" else not of_ppo & titles


def test_runs_are_told_apart_by_dashes_as_well_as_colours():
    looks = {str(drawing.line_style(number)) for number in range(42)}
    assert len(looks) == 42
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


# The episode


def test_an_episode_is_looked_at_step_by_step(run):
    chosen = find_game(run, "best")
    look = explain_all(chosen)
    *moments, last = chosen.replay.watch()
    assert len(look) == len(chosen.replay)
    assert look.rewards.tolist() == [each.reward for each in moments[1:]] + [last.reward]
    most_probable = np.array(look.actions)[look.probabilities.argmax(axis=1)]
    assert most_probable.tolist() == chosen.replay.actions.tolist()
    moment, now = look.moment, preprocess(look.moment.frame)
    before = preprocess(look.frame_before)
    assert (moment.frame == moments[moment.step].frame).all()
    assert moment.action == chosen.replay.actions[moment.step]
    assert (look.frame_before == moments[moment.step - 1].frame).all()
    seen = {APPEARED: (now > before), VANISHED: (now < before)}
    if run.config.preset == "fast":
        seen[STAYED] = (now > 0) & (before > 0)
    for state, is_so in seen.items():
        assert ((look.explanation.field == state) == is_so).all()


def test_advantages_are_those_of_the_definition(run):
    look, discount = subject_of(run).explanations, run.config.learning.discount
    rewards, T = look.rewards, len(look)
    expected = np.zeros(T)
    ends = [t for t in range(T) if rewards[t] != 0 or t == T - 1]
    for t in range(T):
        end = next(each for each in ends if each >= t)
        if look.values is None:
            expected[t] = discount ** (end - t) * rewards[end]
            continue
        for k in range(t, end + 1):
            following = 0.0 if k == end else discount * look.values[k + 1]
            delta = rewards[k] + following - look.values[k]
            expected[t] += (discount * run.config.ppo.gae_lambda) ** (k - t) * delta
    if look.values is None:
        expected = (expected - expected.mean()) / expected.std()
    assert look.advantages(run.config) == pytest.approx(expected, abs=1e-12)


def test_probabilities_add_up_to_one_in_the_colours_and_words_of_the_legend(run):
    from matplotlib.colors import to_hex

    explained = subject_of(run).explanations
    axes = figure_of(run, "episode").axes[0]
    patches = [each for each in axes.patches if hasattr(each, "get_data")]
    highest = patches[-1].get_data().values
    assert highest == pytest.approx(1.0)
    assert len(highest) == len(explained)
    drawn = {each.get_label(): to_hex(each.get_facecolor()) for each in patches}
    assert drawn == {ACTION_NAMES[a].upper(): ACTION_COLOURS[a] for a in explained.actions}


def test_frames_are_in_the_colours_and_words_of_the_legend(run):
    from matplotlib.colors import to_hex

    *_, field, saliency = figure_of(run, "frames").axes
    state_of = {name: state for state, name in PIXEL_NAMES.items()}
    for patch in field.get_legend().get_patches():
        state = state_of.pop(patch.get_label())
        assert to_hex(patch.get_facecolor()) == PIXEL_COLOURS[state]
        assert to_hex(field.images[0].to_rgba(np.array([state]))[0]) == PIXEL_COLOURS[state]
    assert len(state_of) < 3, "some are seen"
    ends = saliency.images[0].cmap([0.0, 1.0])
    assert [to_hex(end) for end in ends] == [ACTION_COLOURS[DOWN], ACTION_COLOURS[UP]]


# The weights


@pytest.fixture(scope="module")
def layer():
    """A gated first layer of two units, and its pictures."""
    W1 = np.random.default_rng(0).normal(size=(features.NUM_INPUTS, 2, 2))
    return W1, plots_weights.spread_gated(W1)


def test_a_gated_picture_is_what_a_lone_pixel_adds(layer):
    W1, pictures = layer
    for row, column in ((0, 0), (41, 17), (79, 79)):
        field = np.zeros((80, 80))
        field[row, column] = 1
        cells = features.find_cells(field)
        assert cells.sum() == 3
        for state in range(3):
            first = state * features.NUM_FEATURES
            added = W1[first : first + features.NUM_CELLS][cells].sum(axis=0)
            assert pictures.cells[state, row, column] == pytest.approx(added)


def test_a_picture_of_pairs_has_each_where_the_left_one_lies(layer):
    W1, pairs = layer[0], layer[1].pairs
    assert pairs.shape[:2] == (159, 39)
    right = (20, 39)  # cell of one row and two columns, in the rightmost ones
    for left in ((20, 38), (3, 10), (39, 0)):
        field = np.zeros((80, 80))
        for row, column in (left, right):
            field[row, 2 * column] = 1
        (pair,) = np.flatnonzero(features.find_pairs(field))
        weight = W1[features.NUM_FEATURES + features.NUM_CELLS + pair]
        assert (pairs[79 + left[0] - right[0], left[1]] == weight).all()


@pytest.mark.slow
def test_the_gated_picture_shows_the_change_since_the_beginning(fast):
    checkpoint = fast.checkpoints.load_best()
    W1, memory = checkpoint.params["W1"], checkpoint.optimizer["v.W1"]
    change = plots_weights.change_of(W1, memory, fast.config)
    beginning = fast.checkpoints.load(0).params["W1"] if 0 in fast.checkpoints.updates() else None
    is_touched = memory.reshape(len(memory), -1).any(axis=1)
    assert (change[~is_touched] == 0).all()
    assert (change[is_touched] != 0).any()
    assert beginning is None or (W1 - change == pytest.approx(beginning, abs=1e-6))
    other = fast.config.updated({"seed": 1}, "test")
    assert plots_weights.change_of(W1, memory, other) is None
    assert "did to the first layer" in figure_of(fast, "weights").get_suptitle()


def test_the_classic_grid_shows_each_unit_as_the_field(copy):
    classic = copy("classic")
    figure = figure_of(classic, "weights")
    checkpoint = classic.checkpoints.load_best()
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    units = checkpoint.params["W1"].T.reshape(-1, 80, 80)
    touched = checkpoint.optimizer["W1"].any(axis=1).reshape(80, 80)
    assert len(shown) == len(units) == 8
    for picture in shown:
        assert any((picture == np.where(touched, unit, 0)).all() for unit in units)


# The command


@pytest.mark.slow
def test_the_command_writes_beside_the_run_and_says_where(fast, capsys):
    words, folder = ["plot", str(fast.path), "--kinds"], fast.path / "plots"
    assert main([*words, "curve, points"]) == 0
    assert capsys.readouterr().out.split() == [f"{folder}/curve.png", f"{folder}/points.png"]
    assert main([*words, "health", "--formats", "svg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": [f"{folder}/health.svg"]}


def test_the_command_refuses_in_one_line(fast, capsys):
    assert main(["plot", str(fast.path), "--kinds", "curves"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
