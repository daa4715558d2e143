"""Pictures of runs: what they show is what the files say."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from toys import toy_evaluation

import pixelpong
from pixelpong.faces import plots
from pixelpong.run.record import Record

pytest.importorskip("matplotlib")


def figure_of(kind, *runs):
    with plots.house_style():
        return plots.KINDS[kind](plots.name_settings(runs))


@pytest.fixture
def curves(make_run):
    """Make a run of a seed with these estimated returns, an update and 100 steps each."""

    def make(name, seed, returns, **options):
        run = make_run(name, seed=seed, **options)
        for update, value in enumerate(returns, 1):
            run.metrics.append({"update": update, "steps": 100 * update, "estimated_return": value})
        return Record.read(run.path)

    return make


@pytest.fixture
def fast(toy_runs, tmp_path):
    """A copy that may be damaged."""
    return Record.read(shutil.copytree(toy_runs["fast"], tmp_path / "fast"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "begin"), [("png", b"\x89PNG\r"), ("svg", b"<?xml"), ("pdf", b"%PDF-")]
)
def test_a_picture_is_the_same_bytes_whatever_the_users_own_settings(toy_runs, format, begin):
    import matplotlib

    runs = [Record.read(toy_runs["fast"])]
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


@pytest.mark.parametrize("backend", ["module://nosuch.backend", "nosuch", "TkAgg"])
def test_a_picture_needs_no_backend_and_no_folder_of_its_library(fast, tmp_path, backend):
    """A notebook names its backend to the programs that it starts; a home may be read-only."""
    no_folder = tmp_path / "file"
    no_folder.touch()
    surroundings = os.environ | {"MPLBACKEND": backend, "MPLCONFIGDIR": str(no_folder / "within")}
    word = [sys.executable, "-m", "pixelpong", "plot", str(fast.path)]
    done = subprocess.run(word, env=surroundings, capture_output=True, text=True, cwd=tmp_path)
    file = fast.path / "plots/curve.png"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{file}\n", "")
    assert file.read_bytes() == plots.draw_plot([fast], "curve", "png")


def test_the_backend_of_a_notebook_stays_the_one_that_it_named():
    code = """
        import os
        from pixelpong.faces import plots
        with plots.house_style():
            plots.render(plots.new_figure(1, 1), "png")
        import matplotlib
        print(os.environ["MPLBACKEND"], matplotlib.get_backend())
    """
    words = [sys.executable, "-c", textwrap.dedent(code)]
    surroundings = os.environ | {"MPLBACKEND": "pdf"}
    done = subprocess.run(words, env=surroundings, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("pdf pdf\n", "")


def test_a_sweeps_picture_is_in_the_folder_of_the_sweep(curves, tmp_path, call):
    runs = [curves(f"sweep/{seed}", seed, [-20, -10]) for seed in range(2)]
    assert runs[0].path.parent == tmp_path / "sweep"
    (tmp_path / "sweep/sweep.csv").touch()
    for words in (("sweep",), ("sweep", "sweep/0")):
        assert call("plot", *words) == (0, "sweep/plots/curve.png\n", "")
    assert call("plot", "sweep/1", "sweep") == (0, "sweep/1/plots/curve.png\n", "")
    assert pixelpong.plot(runs[0].path, out=str(tmp_path / "a.svg")).facts["file"].endswith("a.svg")


@pytest.mark.parametrize("name", ["_hidden", "a$b$c", "名前", "classic"])
def test_any_name_can_stand_in_a_legend_even_twice(toy_runs, tmp_path, name):
    odd = Record.read(shutil.copytree(toy_runs["fast"], tmp_path / name))
    figure = figure_of("curve", odd, Record.read(toy_runs["classic"]))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len({*labels}) == 2
    assert labels[0].strip().replace("\\$", "$") == name
    with plots.house_style():
        assert plots.render(figure, "png")


def test_a_long_title_stays_in_the_picture_and_names_the_rules(curves):
    rules = {"frame_skip": 2, "sticky": 0.6, "max_frames": 3000}
    figure = figure_of("curve", curves("learning-rate-of-a-thousandth", 0, [-20, -10], **rules))
    figure.draw_without_rendering()
    title, (wide, high) = figure.get_suptitle(), figure.get_size_inches() * figure.dpi
    assert "frame skip 2, sticky 0.6, at most 3,000 frames" in title.replace("\n", " ")
    place = next(each for each in figure.texts if each.get_text() == title).get_window_extent()
    assert place.x0 > 0
    assert place.x1 < wide
    assert place.y1 < high


def test_damaged_lines_do_no_harm(fast):
    lines = (
        {"update": 99, "steps": "many", "entropy": [], "timing": 3},
        {"update": 99, "steps": 10**400, "entropy": True, "timing": {"busy_share": None}},
        {"update": 99, "steps": 1, "episode_return": 1, "point_ends": [3, 2], "point_rewards": [1]},
        {"update": 12, "mean_return": 1, "ci95": "wide", "episode_return": {}},
    )
    for file in (fast.run.metrics, fast.run.episodes, fast.run.evaluations):
        with file.path.open("a") as out:
            out.writelines(json.dumps(line) + "\nrubbish\n[]\n" for line in lines)
    for kind in plots.KINDS:
        assert figure_of(kind, Record.read(fast.path)).axes


def test_seeds_are_one_line_as_far_as_all_of_them_go_and_copies_count_once(curves):
    runs = curves("a", 0, [-20, -10, 0, 8]), curves("b", 1, [-18, -14]), curves("copy", 0, [-20])
    axes = figure_of("curve", *runs, curves("other", 0, [-20], hidden=9)).axes[0]
    drawn = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    assert len(axes.get_lines()) == 3 + 2, "a line for each seed, and one for each setting"
    mean, other = drawn["hidden 20, 2 seeds"], drawn["other"]
    assert (mean[0].tolist(), mean[-1].tolist()) == ([100, -19], [200, -12])
    assert other.tolist() == [[100, -20]]
    (band,) = (each.get_paths()[0].vertices for each in axes.collections)
    assert {*map(tuple, band)} >= {(100, -20), (100, -18), (200, -14), (200, -10)}


def test_behind_its_medians_a_single_seed_has_all_its_points_and_several_have_their_medians(curves):
    runs = [curves(str(seed), seed, [-20] * 150) for seed in range(2)]
    for run in runs:
        run.run.metrics.append(*({"update": n, "steps": 100 * n, "kl": n} for n in range(151, 301)))
    one, two = (
        figure_of("health", *(Record.read(run.path) for run in drawn)) for drawn in (runs[:1], runs)
    )
    sizes = [[len(line.get_xdata()) for line in it.axes[0].get_lines()] for it in (one, two)]
    assert sizes == [[150, 60], [60, 60, 200]]


def test_a_seed_that_started_again_has_a_cross_where_it_did(curves):
    run = curves("a", 0, [-20, -10])
    run.run.metrics.append({"update": 3, "steps": 300, "estimated_return": -19, "attempt": 1})
    run.run.metrics.append({"update": 4, "steps": 400, "estimated_return": -18, "attempt": 2})
    axes = figure_of("curve", Record.read(run.path)).axes[0]
    (crosses,) = (line for line in axes.get_lines() if line.get_marker() == "X")
    assert crosses.get_xydata().tolist() == [[400, -18]]


def test_a_sweep_shows_wins_and_their_times(curves):
    runs = [curves(str(seed), seed, [-20, 18 + seed / 10], until_return=18.0) for seed in range(4)]
    for run in runs[1:]:
        more = {"is_won": True, "timing": {"wall_seconds": 9.0}}
        run.run.evaluations.append(toy_evaluation(2, 19.0, target=18.0, **more))
    figure = figure_of("sweep", *(Record.read(run.path) for run in runs))
    lines, times = figure.axes
    assert [each.lines[0].get_ydata().tolist() for each in lines.containers] == [[19.0]] * 3
    assert [text.get_text() for text in times.texts] == ["classic, 4 seeds: 3 of 4 won"]
    assert list(times.get_lines()[0].get_xdata()) == [9.0] * 3
    with plots.house_style():
        assert plots.render(figure, "svg").startswith(b"<?xml")


def test_the_curve_has_the_returns_and_the_evaluations_with_their_intervals(toy_runs):
    run = Record.read(toy_runs["classic"])
    axes = figure_of("curve", run).axes[0]
    (dots,) = (line for line in axes.get_lines() if line.get_marker() == ".")
    assert dots.get_ydata().tolist() == run.returns()[1].tolist() != []
    (errors,) = (each for each in axes.containers if hasattr(each, "has_yerr"))
    assert errors.lines[0].get_ydata().tolist() == [it.mean_return for it in run.evaluations]


def test_the_line_of_three_seeds_is_their_mean_and_not_the_middle_one(curves):
    runs = [curves(str(seed), seed, [low, low + 3]) for seed, low in enumerate((-20, -19, -12))]
    axes = figure_of("curve", *runs).axes[0]
    (mean,) = (it.get_xydata() for it in axes.get_lines() if "3 seeds" in it.get_label())
    assert (mean[0].tolist(), mean[-1].tolist()) == ([100, -17], [200, -14])


def test_the_line_of_two_seeds_begins_where_both_have_begun(curves):
    one, two = curves("a", 0, [-20, -18, -16]), curves("b", 1, [])
    two.run.metrics.append({"update": 2, "steps": 200, "estimated_return": -10})
    two.run.metrics.append({"update": 3, "steps": 300, "estimated_return": -8})
    axes = figure_of("curve", one, Record.read(two.path)).axes[0]
    (mean,) = (it.get_xydata() for it in axes.get_lines() if "2 seeds" in it.get_label())
    assert (mean[0].tolist(), mean[-1].tolist()) == ([200, -14], [300, -12])


def test_a_sweep_of_more_settings_than_can_be_told_apart_says_how_many_are_not_shown(curves):
    runs = [curves(f"h{size}", 0, [-20, -19], hidden=size) for size in range(4, 19)]
    for shown, note in ((runs, "Sweep of 12 runs; 3 more settings not shown"), (runs[:12], "runs")):
        figure = figure_of("sweep", *shown)
        assert len(figure.axes[1].texts) == 12
        assert figure.get_suptitle().replace("\n", " ").endswith(note)


def test_the_health_plot_says_that_its_lines_are_medians(curves):
    run = curves("a", 0, [])
    lines = [{"update": n, "steps": 100 * n, "kl": 9.0 * (n % 3 == 0)} for n in range(1, 181)]
    run.run.metrics.append(*lines)
    figure = figure_of("health", Record.read(run.path))
    assert figure.get_suptitle().endswith("of updates")
    _, medians = figure.axes[0].get_lines()
    assert medians.get_ydata().tolist() == [0] * 60
    assert medians.get_xdata()[:2].tolist() == [200, 500]


def test_the_entropy_of_chance_is_a_line_in_the_health_plot(curves):
    for preset, num_actions in (("classic", 2), ("fast", 3)):
        run = curves(f"of-{preset}", 0, [-20, -10], preset=preset)
        run.run.metrics.append({"update": 3, "steps": 300, "entropy": 0.5})
        axes = figure_of("health", Record.read(run.path)).axes[0]
        assert dotted_lines(axes) == [pytest.approx(math.log(num_actions))]
        assert f"ln {num_actions}: all actions" in axes.texts[0].get_text()


def dotted_lines(axes):
    """The heights of lines across the whole axes."""
    return [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == ":"]


def test_a_target_is_a_line_as_soon_as_the_curve_comes_near_it(curves):
    for best, targets in ((-10, []), (17, [18.0])):
        axes = figure_of("curve", curves(f"to{best}", 0, [-20, best], until_return=18.0)).axes[0]
        assert dotted_lines(axes) == targets
        assert [text.get_text() for text in axes.texts] == ["target +18.0"] * len(targets)
    assert dotted_lines(figure_of("curve", curves("none", 1, [-20, 17])).axes[0]) == []
