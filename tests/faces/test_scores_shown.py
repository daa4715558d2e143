"""What the commands show of a run of a game other than Pong."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from toys import stop_after, toy_config

import pixelpong
from pixelpong.faces import plots
from pixelpong.faces.display import TrainingDisplay
from pixelpong.faces.gauges import PongGauge, ScoreGauge
from pixelpong.faces.live import draw_curve
from pixelpong.loop import Updated, train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record

OF_PONG = re.compile(r"points? won|estimated|greedy|\+\d|−21\b|target")
"""What has no sense in another game."""

SHORT = ["--num-envs", "2", "--num-steps", "40", "--max-frames", "300", "--engine", "serial"]


@pytest.fixture(scope="session")
def breakout(tmp_path_factory):
    """A run of Breakout that ended with ten games; not to be changed."""
    path = tmp_path_factory.mktemp("shown") / "breakout"
    train(RunDirectory.create(path, toy_config("atari", final_episodes=10, updates=4)))
    return path


# --- a training -------------------------------------------------------------------------------


def test_a_training_shows_scores_and_nothing_of_pong(call):
    code, out, error = call(
        "train", "--game", "breakout", *SHORT, "--updates", "3", "--final-episodes", "10",
        "--every", "0",
    )  # fmt: skip
    assert (code, error) == (0, "")
    first, second, *lines = out.splitlines()
    assert first.startswith("runs/breakout-001: training, preset atari, ALE/Breakout-v5 with")
    assert second.startswith("playing at random to see what the game looks like")
    for number, line in enumerate(lines[:3], 1):
        assert re.fullmatch(
            rf"time \d+:\d\d in total  update {number}  steps \d+  episodes \d+  "
            r"best game (–|\d+)  mean of the last 100 (–|\d\.\d)  steps per second [\d,]+  "
            r"human-normalised (–|−?\d %)  at most (\d+:\d\d|–)",
            line,
        ), line
    score = r"mean score \d\.\d \(\d\.\d to \d\.\d\) over 10 games"
    share = r"human-normalised −?\d %  ?\(random 1\.7, human 30\.5\)".replace("  ?", " ")
    assert re.fullmatch(rf"update 3: sampled, {score} of 75 steps, {share}", lines[3])
    assert re.fullmatch(rf"{score}, {share}", lines[4])
    assert lines[5] == (
        "by the rules of ALE/Breakout-v5 with at most 300 frames (frame skip 4, sticky 0.25, "
        "at most 300 frames), with sampled actions"
    )
    assert "film it          pixelpong record runs/breakout-001 --overlay --out best.mp4" in lines
    assert not OF_PONG.search(out)


def test_a_longer_training_is_proposed_with_a_learning_rate_that_falls_later(call):
    words = [*SHORT, "--total-timesteps", "100", "--final-episodes", "0"]
    code, out, _ = call("train", "--game", "breakout", *words)
    assert code == 0
    command = out.splitlines()[-1].split()
    more = "--total-timesteps 320 --anneal-steps 320 --allow-changes"
    assert command == ["pixelpong", "resume", "runs/breakout-001", *more.split()]
    code, out, error = call(*command[1:])
    assert (code, "steps 320" in out) == (0, True)
    assert "fallen" not in error


def test_the_best_game_is_that_of_the_whole_run_and_of_games_that_do_not_explore(make_run):
    run = make_run("run", "atari")
    stop_after(run, 2)
    lines = [{"update": 2, "episode": 9, "episode_return": it} for it in (7.0, 9.0)]
    run.episodes.append(lines[0], lines[1] | {"explores": True})
    stream = io.StringIO()
    display = TrainingDisplay(stream)
    train(run, display)
    shown = stream.getvalue().splitlines()[1:]
    assert all("best game 7 " in line for line in shown), shown


@pytest.mark.parametrize("width", [39, 79])
def test_the_live_screen_fits_and_has_a_bar_from_random_play_to_a_person(make_run, width):
    display, screens = TrainingDisplay(io.StringIO()), []

    def show(event) -> None:
        display(event)
        if isinstance(event, Updated):
            console = Console(file=io.StringIO(), width=width + 1)
            console.print(display.draw(width))
            screens.append(console.file.getvalue())

    train(make_run("run", "atari"), show)
    lines = screens[-1].splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= width + 1
    assert ("random 1.7 " in screens[-1]) == ("human 30.5: −" in screens[-1]) == (width == 79)
    assert not OF_PONG.search(screens[-1])


POINTS = [(1000, 2.0), (2000, 20.0)]


def test_the_curve_has_lines_at_random_play_and_at_a_person_who_is_not_far_above():
    drawn = [line.plain for line in draw_curve(POINTS, ScoreGauge("breakout").axis(POINTS), 60)]
    assert drawn[0].startswith(" human ┄")
    assert drawn[8].startswith("random ")
    assert "┄" in drawn[8]
    far = [line.plain for line in draw_curve(POINTS[:1], ScoreGauge("seaquest").axis(POINTS), 60)]
    assert sum("┄" in line for line in far) == 1
    assert not any("human" in line for line in far)
    none = [line.plain for line in draw_curve(POINTS, ScoreGauge("tetris").axis(POINTS), 60)]
    assert not any("┄" in line for line in none)
    assert (none[0].split()[0], none[8].split()[0]) == ("20", "2")


@pytest.mark.parametrize(
    ("score", "full"), [(-5.0, 0), (1.7, 0), (16.1, 15), (30.5, 30), (400, 30)]
)
def test_the_bar_is_full_at_a_persons_score(score, full):
    bar = ScoreGauge("breakout").draw_bar([(1, score)])
    assert (bar.count("━"), bar.count("╌")) == (full, 30 - full)
    assert (
        ScoreGauge("tetris").draw_bar([(1, score)]) == PongGauge(None).draw_bar([(1, score)]) == ""
    )


# --- lists and evaluations --------------------------------------------------------------------


def test_a_list_has_a_column_of_games_once_one_is_not_pong(call, report, make_run):
    make_run("runs/a", "classic").metrics.append({"update": 1, "steps": 9, "estimated_return": 3.0})
    make_run("runs/b", "classic")
    assert "game" not in call("runs")[1].split()
    make_run("runs/c", "atari").metrics.append({"update": 1, "steps": 9, "mean_return_100": 1234.5})
    make_run("runs/d", "atari", game="qbert", seed=3)
    head, *rows, total = call("runs", "--sort", "name")[1].splitlines()
    heads = "run state game return steps seed size age preset"
    assert head.split() == heads.split()
    assert [row.split()[2:4] for row in rows] == [
        ["pong", "~+3.0"], ["pong", "–"], ["breakout", "~1,234"], ["qbert", "–"],
    ]  # fmt: skip
    assert "~ is an estimate from the points won; ~ is the mean of the last 100 games" in total
    assert [it["game"] for it in report("runs", "--sort", "return")["runs"]] == [
        "breakout", "pong", "pong", "qbert",
    ]  # fmt: skip


def test_one_run_names_its_rules(breakout, call):
    code, out, _ = call("runs", breakout)
    assert code == 0
    assert "\nrules        frame skip 4, sticky 0.25, at most 300 frames\n" in out
    assert not OF_PONG.search(out.replace("at most", ""))


def test_other_games_are_evaluated_with_sampled_actions_unless_greedy_ones_are_requested(
    breakout, call, report
):
    words = "evaluate", breakout, "--episodes", "10", "--engine", "serial"
    told = report(*words)
    assert (told["sampled"], told["game"]) == (True, "breakout")
    assert told["human_normalised"] == (told["mean_return"] - 1.7) / 28.8
    assert report(*words, "--sampled")["returns"] == told["returns"]
    greedy = report(*words, "--greedy")
    assert greedy["sampled"] is False
    assert greedy["returns"] != told["returns"]
    out = call(*words)[1]
    assert re.search(r"sampled play on ALE/Breakout-v5 with at most 300 frames, seed 0\n", out)
    assert re.search(r"mean score \d\.\d \(.*\) over 10 games of 75 steps, human-norm", out)
    assert not OF_PONG.search(out)
    assert call("evaluate", breakout, "--greedy", "--sampled")[0] == 2


def test_pong_is_evaluated_with_greedy_actions_unless_sampled_ones_are_requested(report):
    words = "evaluate", "club", "--episodes", "1", "--engine", "serial", "--max-frames", "200"
    assert [report(*words, *it)["sampled"] for it in ((), ("--greedy",), ("--sampled",))] == [
        False, False, True,
    ]  # fmt: skip


OF_PONG_ALONE = "is for Pong alone, and the game is breakout. Leave it out."
OF_OTHERS = "is for games other than Pong. Leave it out, or choose a --game."
WRONG_PRESET = "Use --preset atari, or leave it out."

REFUSED = {
    "train --game brekout": "train: unknown game 'brekout'; did you mean breakout?",
    "train --game combat": "train: combat cannot be played exactly: it is for two players; choose "
    "another game.",
    "train --game breakout --opponent self": f"train: --opponent {OF_PONG_ALONE}",
    "train --game breakout --until-return 18": f"train: --until-return {OF_PONG_ALONE}",
    "train --life-cost 1": f"train: --life-cost {OF_OTHERS}",
    "train --final-episodes 9": f"train: --final-episodes {OF_OTHERS}",
    "train --game breakout --preset fast": "The preset fast is for Pong, and the game is breakout. "
    f"{WRONG_PRESET}",
    "train --preset atari": "The preset atari is for games other than Pong; choose a --game.",
    "train breakout": "unknown argument 'breakout'; did you mean --game breakout?",
    "evaluate RUN --environment Pong-v0": f"evaluate: --environment {OF_PONG_ALONE}",
    "verify --game breakout --opponent half": f"verify: --opponent {OF_PONG_ALONE}",
    "verify --game seaquest --presets fast": "The preset fast is for Pong, and the game is "
    f"seaquest. {WRONG_PRESET}",
    "sweep --games breakout,qbrt": "sweep: unknown game 'qbrt'; did you mean qbert?",
    "sweep --games breakout --opponent self": f"--opponent {OF_PONG_ALONE}",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_fit_the_game_is_refused_in_a_sentence(breakout, call, words):
    given = [breakout if word == "RUN" else word for word in words.split()]
    assert call(*given) == (2, "", f"pixelpong: error: {REFUSED[words]}\n")


def test_the_game_of_a_run_stays(breakout, call):
    code, _, error = call("resume", breakout, "--game", "qbert", "--allow-changes")
    assert (code, "was started with --game breakout, not qbert" in error) == (2, True)


@pytest.mark.slow
def test_another_game_is_verified_next_to_ale_and_by_its_training(report):
    told = report("verify", "--game", "breakout", "--updates", "2")
    assert (told["is_equal"], told["game"]) == (True, "breakout")
    assert len(told["ways"]) == 6
    assert all(way["is_same"] and way["preset"] == "atari" for way in told["ways"])


# --- plots ------------------------------------------------------------------------------------


def figure_of(kind, *paths):
    with plots.house_style():
        return plots.KINDS[kind](plots.name_settings([Record.read(path) for path in paths]))


def texts_of(axes):
    return {text.get_text().replace("\n", " ") for text in axes.texts}


def test_a_plot_has_scores_with_lines_at_random_play_and_a_person(make_run):
    pytest.importorskip("matplotlib")
    run = make_run("run", "atari")
    for update, value in enumerate((1.0, 9.0, 12.0), 1):
        run.metrics.append({"update": update, "steps": 100 * update, "mean_return_100": value})
    axes = figure_of("curve", run.path).axes[0]
    assert axes.get_ylabel() == "mean score of the last 100 games"
    assert {"random 1.7", "human 30.5"} == texts_of(axes)
    levels = {float(line.get_ydata()[0]) for line in axes.get_lines() if len(line.get_ydata()) == 2}
    assert {1.7, 30.5} <= levels
    assert axes.get_ylim()[1] > 30.5
    assert axes.get_lines()[0].get_ydata().tolist() == [1.0, 9.0, 12.0]


def test_a_person_far_above_is_named_and_does_not_flatten_the_curve(make_run):
    pytest.importorskip("matplotlib")
    run = make_run("run", "atari", game="seaquest")
    run.metrics.append({"update": 1, "steps": 100, "mean_return_100": 90.0})
    run.metrics.append({"update": 2, "steps": 200, "mean_return_100": 300.0})
    axes = figure_of("curve", run.path).axes[0]
    assert {"random 68.4", "human 42,055 ↑"} == texts_of(axes)
    assert axes.get_ylim()[1] < 400


def test_several_games_are_compared_by_shares_of_a_persons_score(make_run):
    pytest.importorskip("matplotlib")
    runs = [make_run(game, "atari", game=game) for game in ("breakout", "boxing", "tetris")]
    for run, value in zip(runs, (16.1, 12.1, 5.0), strict=True):
        for update in (1, 2):
            run.metrics.append({"update": update, "steps": update, "mean_return_100": value})
    for kind in ("curve", "sweep"):
        axes = figure_of(kind, *(run.path for run in runs)).axes[0]
        drawn = {line.get_label(): [*line.get_ydata()] for line in axes.get_lines()}
        assert drawn["breakout"] == pytest.approx([50, 50])
        assert drawn["boxing"] == pytest.approx([100, 100])
        assert {"random", "human"} == texts_of(axes)


def test_the_health_of_another_game_has_no_panel_of_pongs(breakout):
    pytest.importorskip("matplotlib")
    figure = figure_of("health", breakout)
    titles = {axes.get_title() for axes in figure.axes}
    assert "entropy of the policy, nats" in titles
    assert not any("go up" in title for title in titles)
    assert any("ln 4: all actions equally likely" in texts_of(axes) for axes in figure.axes)


def test_in_python_it_is_the_same(breakout):
    run = pixelpong.Run(breakout)
    assert run.to_dict()["game"] == "breakout"
    assert "atari on ALE/Breakout-v5" in repr(run)
    assert not OF_PONG.search(repr(run))
