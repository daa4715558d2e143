"""Choosing one of a run's agents, or one of its replays with an agent to explain it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.agent.file import SHIPPED, Agent, load_milestone, load_shipped, read_agent
from pixelpong.agent.network import fit_params
from pixelpong.agent.strengths import read_strengths
from pixelpong.config import Config
from pixelpong.config.suggestions import suggest
from pixelpong.errors import CheckpointError, ConfigError, RunError, expected
from pixelpong.items import BUILTIN, LEAGUE, SELF
from pixelpong.learners import restoring
from pixelpong.learners.progress import Progress
from pixelpong.play.replay import Replay
from pixelpong.run.checkpoints import Checkpoint, fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.names import LATEST, find_run

PACKAGE = "package"
"""Names the agents that come with the package, if it stands for a run."""


_STRENGTHS = ((-19.0, "untrained"), (-5.0, "beginner"), (8.0, "club"), (18.0, "strong"))
"""Below each return, the word for such an agent; above them all it is a champion."""


@dataclass(frozen=True)
class ChosenReplay:
    """A replay, and the agent that explains it (`pixelpong.agent.explain`).

    Attributes:
        replay: the episode.
        agent: the one that played it; if that was not saved, the closest one that was.
        is_own: whether that agent played the replay, to the bit.
        title: one line about the episode.
    """

    replay: Replay
    agent: Agent
    is_own: bool
    title: str


def as_agent(run: RunDirectory, checkpoint: Checkpoint) -> Agent:
    """The agent of a checkpoint, to the bit.

    Raises:
        CheckpointError: it belongs to another algorithm, or contains no agent.
    """
    with restoring():
        progress = Progress.from_dict(checkpoint.counters["progress"])
    about = {
        "update": checkpoint.update,
        "steps": progress.steps,
        "episodes": progress.episodes,
        "estimated_return": progress.estimated_return,
        "params_sha256": fingerprint(checkpoint.params),
        "is_rounded": False,
    }
    algorithm = run.config.learning.algorithm
    params = fit_params(checkpoint.params, algorithm)
    return Agent(params, algorithm, run.config.environment.protocol, about)


def find_agent(word: str | Path | None) -> tuple[RunDirectory | None, str | None]:
    """The run that a word names, or None and the name of an agent in the package.

    Args:
        word: as for `find_run`; or `PACKAGE`, or one of `SHIPPED`, which come first: ``./club`` is
            a path. None is `PACKAGE`.

    Returns:
        For `load_agent`: the run; the agent, if the word says which.

    Raises:
        RunError: there is no such run.
    """
    if word is None or word == PACKAGE:
        return None, None
    if word in SHIPPED:
        return None, str(word)
    return RunDirectory.open(find_run(word, others=(PACKAGE, *SHIPPED))), None


def load_agent(run: RunDirectory | None, which: str = "best") -> Agent:
    """An agent by name.

    Args:
        run: None for an agent in the package.
        which: ``"best"``, ``"latest"``, or the number of an update; in the package, see
            `pixelpong.agent.file.load_shipped`.

    Raises:
        CheckpointError: there is no agent of this name, or it is damaged.
    """
    if run is None:
        return load_shipped(which)
    if which == "best":
        return as_agent(run, run.checkpoints.load_best())
    if which == "latest":
        return as_agent(run, run.checkpoints.load_latest())
    known = list_updates(run)
    if which not in map(str, known):
        listed = ", ".join(str(update) for update in known) or "none"
        advice = f"use best, latest or one of: {listed}"
        raise CheckpointError(expected(f"an agent of {run.path}", repr(which), advice))
    update = int(which)
    if update in run.checkpoints.updates():
        return as_agent(run, run.checkpoints.load(update))
    return load_milestone(run.milestones, update)


def load_named(word: str) -> Agent:
    """The agent that a word names.

    Args:
        word: an agent's file; or as for `find_agent`, where a run stands for its best agent, and
            ``RUN@100`` for that of update 100.

    Raises:
        CheckpointError: there is no such agent, or it is damaged.
        RunError: there is no such run.
    """
    if os.path.isfile(word):  # no error for a name that is too long
        return read_agent(Path(word))
    name, at, which = word.rpartition("@")
    if not at or os.path.isdir(word):
        name, which = word, ""
    run, shipped = find_agent(name)
    return load_agent(run, which or shipped or "best")


def settle_opponents(configs: Iterable[Config]) -> list[Config]:
    """Configurations whose opponents can be met, before anything of their trainings is written.

    ``latest`` becomes the name of that run: soon another one is the latest.

    Raises:
        ConfigError, CheckpointError, RunError: as `load_rival`.
    """
    names = {word: word for word in (BUILTIN, SELF, LEAGUE)}
    settled = []
    for config in configs:
        word = config.ppo.opponent
        if word not in names:
            run, at, which = word.partition("@")
            is_latest = run == LATEST and not os.path.isfile(word)
            names[word] = f"{find_run(LATEST)}{at}{which}" if is_latest else word
            load_rival(config)
        settled.append(config.updated({"opponent": names[word]}, "the opponent"))
    return settled


def load_rival(config: Config) -> Agent:
    """The agent that a training plays against: a run's best one, one of a file, or the package's.

    Raises:
        ConfigError: it has another network, or plays another game; or a word is mistyped.
        CheckpointError: it is missing or damaged.
        RunError: there is no such run.
    """
    word = config.ppo.opponent
    try:
        agent = load_named(word)
    except RunError:
        near = suggest(word, (BUILTIN, SELF, LEAGUE))
        if near is None:
            raise
        advice = f"did you mean {near}?"
        raise ConfigError(expected("an opponent", repr(word), advice)) from None
    if agent.algorithm != "ppo" or agent.protocol.is_toy:
        got = f"{word}, which is of {agent.algorithm} in {agent.protocol.name}"
        what = "--opponent to be an agent of PPO that plays Pong"
        raise ConfigError(expected(what, got, "choose another"))
    return agent


def name_strength(about: dict[str, Any]) -> str:
    """How well an agent plays, in a word; the names of the agents in the package are such words.

    Args:
        about: as in `Agent.about`. An agent in the package has its own name, from a tournament. For
            another one the return of its evaluation counts, if it has one; otherwise the training's
            estimate.

    >>> name_strength({"estimated_return": 12.5}), name_strength({})
    ('strong', 'untrained')
    """
    trained = about.get("params_sha256")
    for name, strength in read_strengths().items():
        if trained == strength.params_sha256:
            return name
    greedy = about.get("evaluation", {}).get("greedy", {}).get("mean_return")
    known = about.get("estimated_return") if greedy is None else greedy
    if known is None:
        return _STRENGTHS[0][1]
    return next((word for limit, word in _STRENGTHS if known < limit), SHIPPED[-1])


def list_updates(run: RunDirectory) -> list[int]:
    """The updates whose agent is saved, as a checkpoint or a milestone, ascending."""
    return sorted({*run.checkpoints.updates(), *run.milestones.updates()})


def read_replays(run: RunDirectory) -> list[dict[str, Any]]:
    """The lines of the run's replays that can be read, in the order of training."""
    lines = []
    for line in run.replays.read():
        try:
            Replay.from_line(line)
        except RunError as error:
            run.warn(f"{error}; skipping it")
        else:
            lines.append(line)
    return lines


def choose_replay(
    run: RunDirectory | None,
    *,
    update: int | None = None,
    which: str | None = None,
    episode: int | None = None,
) -> ChosenReplay:
    """Choose a replay of a run; without replays, its best agent plays.

    Args:
        run: None for the agent in the package.
        update: the training's replay closest to this update; by default the newest.
        which: an agent (`load_agent`) to play an episode of an evaluation, instead of a replay.
        episode: the number of the training's episode; with `which`, of the evaluation's.

    Raises:
        ConfigError: both an update and an agent are given.
        RunError: there is no such replay.
        CheckpointError: there is no such agent, or it is damaged.
    """
    if update is not None and which is not None:
        raise ConfigError(expected("--update or an agent", "both", "give only one of them"))
    lines = [] if run is None or which is not None else read_replays(run)
    if run is None or which is not None or not (lines or update or episode):
        return _play_episode(run, which or "best", episode or 0)
    chosen = [line for line in lines if episode in (None, line["episode"])]
    if not chosen:
        listed = ", ".join(str(line["episode"]) for line in lines[-20:]) or "none"
        got = "no replay" if episode is None else f"no replay of episode {episode}"
        advice = f"use one of {listed}, or --best" if lines else "use --best"
        raise RunError(expected(f"a replay in {run.path}", got, advice))
    target = chosen[-1]["update"] if update is None else update
    line = min(reversed(chosen), key=lambda each: abs(each["update"] - target))
    return open_replay(run, line)


def open_replay(run: RunDirectory, line: dict[str, Any]) -> ChosenReplay:
    """The replay of one line of `read_replays`, with the closest agent."""
    replay = Replay.from_line(line)
    agents = list_updates(run)
    if not agents:
        raise CheckpointError(expected(f"an agent in {run.path}", "none", "train it"))
    # The params from before this update played it.
    nearest = min(agents, key=lambda each: abs(each - (replay.update - 1)))
    title = (
        f"episode {replay.episode} of {run.path.name}, update {replay.update}, "
        f"return {replay.episode_return:+.0f}"
    )
    return ChosenReplay(replay, load_agent(run, str(nearest)), is_own=False, title=title)


def _play_episode(run: RunDirectory | None, which: str, index: int) -> ChosenReplay:
    agent = load_agent(run, which)
    seed = 0 if run is None else run.config.seed
    replay = agent.play_episode(seed, index)
    name = "the agent in the package" if run is None else run.path.name
    title = (
        f"{name}, update {agent.about['update']}, greedy episode {index}, "
        f"return {replay.episode_return:+.0f}"
    )
    return ChosenReplay(replay, agent, is_own=True, title=title)
