"""Choosing one of a run's agents, and a game that it plays."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.agent.file import (
    SHIPPED,
    Agent,
    load_shipped,
    read_agent,
    write_agent,
)
from pixelpong.agent.network import fit_params
from pixelpong.config import Config
from pixelpong.errors import CheckpointError, ConfigError, RunError, did_you_mean, expected
from pixelpong.items import BUILTIN, HALF, SELF, Params
from pixelpong.learners import restoring
from pixelpong.learners.progress import Progress
from pixelpong.play.replay import Replay
from pixelpong.run.arrays import fingerprint
from pixelpong.run.checkpoints import Checkpoint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.names import LATEST, find_run

NO_AGENT = (BUILTIN, SELF, HALF)
"""Words for opponents that are no agent's name."""

PACKAGE = "package"
"""Names the agents that come with the package, if it stands for a run."""


_STRENGTHS = ((-19.0, "untrained"), (-5.0, "beginner"), (8.0, "club"), (18.0, "strong"))
"""Below each return, the word for such an agent; above them all it is a champion."""


@dataclass(frozen=True)
class ChosenReplay:
    """A game, the agent that played it and explains it, and one line about it."""

    replay: Replay
    agent: Agent
    title: str


def make_agent(config: Config, params: Params, progress: Progress) -> Agent:
    """The agent that a training has come to."""
    about = {
        "update": progress.update,
        "steps": progress.steps,
        "episodes": progress.episodes,
        "estimated_return": progress.estimated_return,
        "params_sha256": fingerprint(params),
        "is_rounded": False,
    }
    return Agent(params, config.learning.algorithm, config.environment.protocol, about)


def as_agent(run: RunDirectory, checkpoint: Checkpoint) -> Agent:
    """The agent of a checkpoint, to the bit."""
    with restoring():
        progress = Progress.from_dict(checkpoint.counters["progress"])
    params = fit_params(checkpoint.params, run.config.learning.algorithm)
    return make_agent(run.config, params, progress)


def find_agent(word: str | Path | None) -> tuple[RunDirectory | None, str | None]:
    """The run that a word names, or None and the name of an agent in the package.

    Args:
        word: as for `find_run`; or `PACKAGE`, or one of `SHIPPED`, which come first: ``./club`` is
            a path. None is `PACKAGE`.

    Returns:
        For `load_agent`: the run; the agent, if the word says which.
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
    return read_agent(run.milestones.path(update))


def open_agent(
    word: str | Path | None, checkpoint: str = "best"
) -> tuple[RunDirectory | None, Agent]:
    """The agent that a word names, and its run if it has one.

    Args:
        word: an agent's file, or as for `find_agent`.
        checkpoint: which of a run's agents, or of the package's; see `load_agent`.
    """
    if word is not None and os.path.isfile(word):  # no error for a name that is too long
        return None, read_agent(Path(word))
    run, name = find_agent(word)
    return run, load_agent(run, name or checkpoint)


def load_named(word: str) -> Agent:
    """The agent that a word names.

    Args:
        word: an agent's file; or as for `find_agent`, where a run stands for its best agent, and
            ``RUN@100`` for that of update 100.
    """
    name, at, which = word.rpartition("@")
    if not at or os.path.exists(word):
        return open_agent(word)[1]
    return load_agent(find_agent(name)[0], which)


def settle_opponents(configs: Iterable[Config]) -> list[Config]:
    """Configurations whose opponents can be met, before anything of their trainings is written.

    ``latest`` becomes the name of that run: soon another one is the latest.
    """
    names = {word: word for word in NO_AGENT}
    settled = []
    for config in configs:
        word = config.ppo.opponent
        if word not in names:
            run, at, which = word.partition("@")
            is_latest = run == LATEST and not os.path.isfile(word)
            names[word] = f"{find_run(LATEST)}{at}{which}" if is_latest else word
            load_opponent(config)
        settled.append(config.updated({"opponent": names[word]}, "the opponent"))
    return settled


def keep_opponent(run: RunDirectory) -> Params | None:
    """The parameters of the agent that a run's training plays against; None if it is none.

    They are copied into the run at first, rounded, and read from there ever after: what the word
    names may change or go. Another word has another file, so a process that dies between writing
    this file and the configuration mixes up nothing.
    """
    word = run.config.ppo.opponent
    if word in NO_AGENT:
        return None
    path = run.path / f"opponent-{hashlib.sha256(word.encode()).hexdigest()[:12]}.safetensors"
    if not path.exists():
        write_agent(load_opponent(run.config), path)
    params = read_agent(path).params
    return {name: w.astype(run.config.network.dtype) for name, w in params.items()}


def load_opponent(config: Config) -> Agent:
    """The agent that a training plays against: a run's best one, a file's, or the package's."""
    word = config.ppo.opponent
    try:
        agent = load_named(word)
    except RunError:
        advice = did_you_mean(word, NO_AGENT, "")
        if not advice:
            raise
        raise ConfigError(expected("an opponent", repr(word), advice)) from None
    if agent.algorithm != "ppo":
        got = f"{word}, which is of {agent.algorithm}"
        what = "--opponent to be an agent of PPO"
        raise ConfigError(expected(what, got, "choose another"))
    return agent


def name_strength(about: dict[str, Any]) -> str:
    """How well an agent plays, in a word; the names of the agents in the package are such words.

    Args:
        about: as in `Agent.about`. An agent in the package has its own name. For
            another one the return of its evaluation counts, if it has one; otherwise the training's
            estimate.

    >>> name_strength({"estimated_return": 12.5}), name_strength({})
    ('strong', 'untrained')
    """
    if "name" in about:
        return str(about["name"])
    greedy = about.get("evaluation", {}).get("greedy", {}).get("mean_return")
    known = about.get("estimated_return") if greedy is None else greedy
    if known is None:
        return _STRENGTHS[0][1]
    return next((word for limit, word in _STRENGTHS if known < limit), SHIPPED[-1])


def list_updates(run: RunDirectory) -> list[int]:
    """The updates whose agent is saved, as a checkpoint or a milestone, ascending."""
    return sorted({*run.checkpoints.updates(), *run.milestones.updates()})


def find_game(
    run: RunDirectory | None,
    checkpoint: str = "best",
    episode: int = 0,
    *,
    is_greedy: bool = True,
) -> ChosenReplay:
    """A game that one of a run's agents plays now.

    Args:
        run: None for an agent in the package.
        checkpoint: which agent, see `load_agent`.
        episode: the game's index in an evaluation with the run's seed.
    """
    agent = load_agent(run, checkpoint)
    name = "the agent in the package" if run is None else run.path.name
    return play_game(agent, name, 0 if run is None else run.config.seed, episode, is_greedy)


def play_game(
    agent: Agent, name: str, seed: int, episode: int, is_greedy: bool = True
) -> ChosenReplay:
    """A game that an agent plays now, as the evaluation with this seed would."""
    replay = agent.play_episode(seed, episode, is_greedy=is_greedy)
    title = (
        f"{name}, update {agent.about.get('update', 0)}, {'greedy' if is_greedy else 'sampled'} "
        f"episode {episode}, return {replay.episode_return:+.0f}"
    )
    return ChosenReplay(replay, agent, title)
