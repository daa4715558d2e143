"""Figures in the text are those of the records in `benchmarks/`, rounded as the package does.

A page says them in its own words; what is compared is the spelled figure with a word or two that
stand next to it, so that another figure of the same size elsewhere does not help.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from shown import DOCS, ROOT

from pixelpong.config.presets import load_preset, preset_names
from pixelpong.faces.display import steps_left
from pixelpong.run.words import duration, signed

READMES = ("README.md", "docs/zh/README.md")


@cache
def load(name: str) -> Any:
    """A record."""
    return json.loads((ROOT / "benchmarks" / f"{name}.json").read_text("utf-8"))


def time_to_win() -> Iterator[tuple[str, str]]:
    """Of the twenty seeds."""
    record = load("solve")
    seeds = record["seeds"]
    seconds = [each["seconds"] for each in seeds]
    typical = f"{statistics.median(seconds):.0f}"
    least, most = f"{min(seconds):.0f}", f"{max(seconds):.0f}"
    steps = statistics.median([each["steps"] for each in seeds])
    fresh = [each["fresh"]["mean_return"] for each in seeds]
    middle, weakest = signed(statistics.median(fresh), 2), signed(min(fresh), 2)
    after = statistics.median([each["whole_command_seconds"] - each["seconds"] for each in seeds])
    assert all(each["is_won"] for each in seeds)
    (restarts,) = [each["attempts"] - 1 for each in seeds if each["attempts"] > 1]
    assert restarts == 2

    yield "README.md", f"took {least} to {most} seconds to win (median {typical})"
    yield "README.md", f"the median agent averaged {middle}, the weakest {weakest}"
    yield "README.md", f"new games at the end ({after:.0f} seconds)"
    yield "README.md", f"**{typical} s** | {steps / 1e6:.2f} M |"
    yield "docs/zh/README.md", f"用了 {least} 到 {most} 秒获胜（中位数 {typical} 秒）"
    yield "docs/zh/README.md", f"平均回报的中位数是 {middle}，最弱的一个是 {weakest}"
    yield "docs/zh/README.md", f"（{after:.0f} 秒），另外算"
    yield "docs/zh/README.md", f"**{typical} 秒** | {steps / 1e4:.0f} 万 |"
    yield "docs/start.md", f"that took {least} to {most} seconds"
    yield "docs/zh/start.md", f"用了 {least} 到 {most} 秒"
    yield "docs/faq.md", f"The median of twenty seeds is {typical} seconds"
    yield "docs/faq.md", f"{steps / 1e6:.2f} million steps"
    yield "docs/reproduce.md", f"median {typical} s ({least} to {most})"
    yield "docs/reproduce.md", f"Their median is {middle}"
    (peer,) = record["peers"]
    steps, mean = f"{peer['steps']:,} steps", peer["mean_return_100"]
    yield "docs/faq.md", steps
    yield "docs/reproduce.md", steps
    yield "docs/reproduce.md", signed(mean, 2)
    yield "README.md", f"{signed(mean)} after {peer['seconds']:.0f} s"
    yield "docs/zh/README.md", f"{peer['seconds']:.0f} 秒后为 {signed(mean)}"


def time_to_win_in_the_tutorial() -> Iterator[tuple[str, str]]:
    """Of the same seeds."""
    seeds, folder = load("solve")["seeds"], "docs/tutorial"
    seconds = [each["seconds"] for each in seeds]
    millions = [each["steps"] / 1e6 for each in seeds]
    fresh = [each["fresh"]["mean_return"] for each in seeds]
    least, median, most = min(millions), statistics.median(millions), max(millions)
    yield (
        f"{folder}/10_from_reinforce_to_ppo.md",
        f"{signed(min(fresh))} to {signed(max(fresh))} after {least:.1f} to {most:.1f} million",
    )
    yield (
        f"{folder}/11_a_winning_agent.md",
        f"took {min(seconds):.0f} to {max(seconds):.0f} seconds, and all {len(seeds)} seeds won",
    )
    yield (
        f"{folder}/12_what_next.md",
        f"after {least:.2f} to {most:.2f} million steps, with a median of {median:.2f}",
    )
    yield (
        "docs/zh/tutorial/12_what_next.md",
        f"{100 * least:.0f} 万到 {100 * most:.0f} 万步获胜，中位数 {100 * median:.0f} 万",
    )


def throughput() -> Iterator[tuple[str, str]]:
    """Of one machine."""
    record = load("throughput")
    speeds, ratios = record["steps_per_second"], record["ratios"]
    rows = {
        "bare ALE, one process a core": "ale",
        "our emulator, one process a core": "emulator",
        "rollouts of the fast mode": "rollouts",
        "classic training, all of it": "classic",
        "fast training, all of it": "fast",
        "dense float64 loop on ALE, as the originals write it": "dense_loop",
        "EnvPool, stepping alone": "envpool",
        "AtariVectorEnv of ale-py, stepping alone": "atari_vector_env",
        "Gymnasium's AsyncVectorEnv, stepping alone": "gymnasium_async",
    }
    for title, name in rows.items():
        ratio = f"{ratios[name]:.2f}" if name in ratios else "1"
        yield "docs/scaling.md", f"| {title} | {round(speeds[name]):,} | {ratio} |"
    yield "README.md", f"[{ratios['emulator']:.0f} times as fast as ALE]"
    assert 9.5 < ratios["fast"] < 10
    yield "docs/faq.md", "nearly ten times as many steps"


def batches() -> Iterator[tuple[str, str]]:
    """Of the originals' table."""
    for each in load("batches")["batches"]:
        yield "docs/scaling.md", f"| {each['episodes']:,} | {each['seconds']:.2f} s |"
        if each["episodes"] >= 10:
            assert 950 < each["steps"] / each["episodes"] < 1060
    yield "docs/scaling.md", "about 1,000 steps per episode"
    yield "docs/tutorial/09_ray.md", "about 1,000 steps"
    yield "docs/zh/tutorial/09_ray.md", "约 1,000 步"
    record = load("throughput_ray")["steps_per_second"]
    for page, name in (("docs/reproduce.md", "classic"), ("docs/reproduce.md", "fast")):
        assert record[f"{name}_ray"] < record[name], (page, name)


def vector() -> Iterator[tuple[str, str]]:
    """Of the vector environment."""
    record = load("vector")
    speeds, page = record["steps_per_second"], "docs/howto/environment.md"
    ratios = {name: middle for name, (middle, *_) in record["ratios"].items() if "/" in name}
    ours, theirs = ratios["atari / AtariVectorEnv"], ratios["pixels / AtariVectorEnv"]
    for name in ("atari", "frame", "pixels", "field", "AtariVectorEnv", "EnvPool"):
        yield page, f"| {round(speeds[name], -2 if speeds[name] < 10_000 else -3):,} |"
    yield page, f"| **{ours:.1f}** |"
    yield page, f"| **{theirs:.0f}** |"
    yield page, f"`make_env()` plays {round(speeds['make_env'], -2):,} steps per second"
    yield page, f"""`gymnasium.make("ALE/Pong-v5")` {round(speeds["ALE/Pong-v5"], -2):,}"""
    yield "docs/reproduce.md", f"{ours:.1f} times AtariVectorEnv"
    yield "docs/reproduce.md", f"{ratios['atari / EnvPool']:.1f} times EnvPool"
    yield "docs/reproduce.md", f"`make_env` {ratios['make_env / ALE/Pong-v5']:.1f} times"
    assert round(ours) == 20
    yield "README.md", "twenty times as fast in Pong"
    yield "docs/zh/README.md", "速度是它的二十倍"
    assert record["median"] > 6
    yield "README.md", "six times as fast in most games"
    yield "docs/zh/README.md", "多数的速度是它的六倍"


def ppo_in_pytorch() -> Iterator[tuple[str, str]]:
    """Of the curve on the page of the environment."""
    record, page = load("ppo_torch"), "docs/howto/environment.md"
    rows = [*record["curve"][1::2]]
    yield page, "| minutes | " + " | ".join(f"{it['seconds'] / 60:.0f}" for it in rows) + " |"
    yield page, " | ".join(signed(it["mean_return_100"]) for it in rows) + " |"
    yield page, f"mean return of {signed(record['mean_greedy_return'])}"
    last = record["curve"][-1]
    yield page, f"{round(last['steps'] / last['seconds'], -1):.0f} steps a second"


def plateau() -> Iterator[tuple[str, str]]:
    """Of the last points."""
    record, page = load("plateau"), "docs/algorithms.md"
    worth = record["expected"]
    yield page, f"{record['lost']} of these lost points"
    yield (
        page,
        f"worth {signed(worth['30'], 2)}; nine steps before it, still {signed(worth['9'], 2)}",
    )
    yield page, f"six steps before it, {signed(worth['6'], 2)}"
    yield page, f"{record['cost_of_decisions']:.2f} ± {record['standard_error']:.2f}"
    yield page, f"In {100 * record['share_with_a_step_that_cost_a_quarter']:.0f} %"


def presets() -> Iterator[tuple[str, str]]:
    """Of one run of each preset to its end."""
    record = load("presets")
    rows = {row["preset"]: row for row in record["presets"]}
    elsewhere = {"fast", "half", "atari"}  # in other records
    assert rows.keys() == set(preset_names()) - elsewhere
    yield "docs/reproduce.md", f"{record['games']} greedy games of its last agent"
    for name, row in rows.items():
        greedy = row["greedy"]
        low, high = (signed(end) for end in greedy["ci95"])
        mean, last = signed(greedy["mean_return"]), signed(row["mean_return_100"])
        yield (
            "docs/reproduce.md",
            f"| `pixelpong train --preset {name} --seed {row['seed']}` | {row['episodes']:,} | "
            f"{row['steps']:,} | {last} | {mean} | {low} to {high} |",
        )
        for page in ("docs/start.md", "docs/zh/start.md"):
            yield page, f" | {mean}"
    row = rows["karpathy"]
    last = signed(row["mean_return_100"])
    assert row["episodes"] == 8000
    assert round(row["mean_return_100"]) == -19
    yield "README.md", f"| not reached; {last} after 8,000 episodes |"
    yield "docs/zh/README.md", f"8,000 局后为 {last}"
    yield "docs/tutorial/06_first_training.md", "ends at about −19 after its 8,000"
    yield "docs/zh/tutorial/06_first_training.md", "最后约为 −19"
    yield "docs/faq.md", "it plays at about −19"
    yield "src/pixelpong/config/presets/karpathy.toml", "# of about -19 over the last 100"


def the_screen_of_a_training() -> Iterator[tuple[str, str]]:
    """Of seed 0 after fifty updates, at the speed of another record."""
    row, speed = load("screen")["metrics"], load("throughput")["steps_per_second"]["fast"]
    fast = load_preset("fast")
    assert row["steps"] == row["update"] * fast.num_envs * fast.num_steps
    values = {
        "time": f"{duration(row['steps'] / speed)} in total",
        "update": f"{row['update']:,}",
        "steps": f"{row['steps']:,}",
        "episodes": f"{row['episodes']:,}",
        "points won": f"{100 * row['points_won_1000']:.1f} %",
        "estimated return": signed(row["estimated_return"]),
        "steps per second": f"{speed:,.0f}",
        "mean of the last 100": signed(row["mean_return_100"]),
        "time to the win": f"about {duration(steps_left(row['estimated_return']) / speed)}",
        "at most": duration((fast.total_timesteps - row["steps"]) / speed),
    }
    for page in ("docs/start.md", "docs/zh/start.md"):
        for name, value in values.items():
            yield page, f"{name} {value}"


def lines_of_the_examples() -> Iterator[tuple[str, str]]:
    """Where a page says how long an example is."""
    for page in (*READMES, *(str(path.relative_to(ROOT)) for path in DOCS.rglob("*.md"))):
        if page.endswith("log.md"):
            continue
        text = " ".join((ROOT / page).read_text("utf-8").split())
        for said, name in re.findall(r"(\d+) (?:lines|行)\]\([./]*examples/(\w+)\.py\)", text):
            yield from check_length(page, name, int(said), said)
        after = r"examples/(\w+)\.py\W[^|\[]{0,110}?(\d+) (?:lines|行)"
        for name, said in re.findall(after, text):
            yield from check_length(page, name, int(said), said)


def check_length(page: str, name: str, said: int, words: str) -> Iterator[tuple[str, str]]:
    """Within two in a hundred."""
    lines = len((ROOT / f"examples/{name}.py").read_text("utf-8").splitlines())
    assert abs(lines - said) <= 0.02 * lines, (page, name, said, lines)
    yield page, words


@pytest.mark.parametrize(
    "say", [time_to_win, time_to_win_in_the_tutorial, throughput, batches, vector, ppo_in_pytorch,
            plateau, presets, the_screen_of_a_training, lines_of_the_examples],
    ids=lambda say: say.__name__,
)  # fmt: skip
def test_the_pages_say_what_the_record_says(say):
    said = list(say())
    assert said
    for page, figure in said:
        text = (ROOT / page).read_text("utf-8")
        assert figure in text or figure in " ".join(text.split()), f"{page}: expected {figure!r}"


def test_the_evenings_list_has_as_many_files_as_the_pages_say():
    chapter = (DOCS / "concepts.md").read_text("utf-8").split("## Read it in an evening")[1]
    files = chapter.split("\n## ")[0].count("(../src/pixelpong/")
    assert f"these {files} files" in chapter
    assert f"{files} files to read in an evening" in (ROOT / "README.md").read_text("utf-8")
    assert f"{files} 个文件，一个晚上读得完" in (ROOT / "docs/zh/README.md").read_text("utf-8")
