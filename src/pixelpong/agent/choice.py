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
from pixelpong.learners import draw_params, put_rows, restoring
from pixelpong.learners.progress import Progress
from pixelpong.play.replay import Replay
from pixelpong.run.arrays import fingerprint
from pixelpong.run.checkpoints import Checkpoint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.names import LATEST, find_run
from pixelpong.run.words import signed

NO_AGENT = (BUILTIN, SELF, HALF)  # opponents that are not an agent's name
PACKAGE = "package"  # used as a run's name: the agents that come with the package

# The word for an agent below each return; above them all it is a champion.
_STRENGTHS = ((-19.0, "untrained"), (-5.0, "beginner"), (8.0, "club"), (18.0, "strong"))


@dataclass(frozen=True)
class ChosenReplay:
    """A game, the agent that played it and explains it, and one line about it."""

    replay: Replay
    agent: Agent
    title: str


def make_agent(config: Config, params: Params, progress: Progress) -> Agent:
    """The agent at the current point of a training."""
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
    """The agent of a checkpoint, bit for bit."""
    with restoring():
        progress = Progress.from_dict(checkpoint.card["progress"])
        config, network = run.config, run.config.network
        drawn = config.learning.algorithm, network.hidden, network.dtype, config.seed
        params = draw_params(*drawn, progress.attempt)
        put_rows(params, checkpoint.arrays)
    return make_agent(config, fit_params(params, config.learning.algorithm), progress)


def find_agent(word: str | Path | None) -> tuple[RunDirectory | None, str | None]:
    """A word as the arguments of `load_agent`: the run, or None; the agent, if the word says it.

    `PACKAGE`, the same as None, and the names in `SHIPPED` come before runs: ``./club`` is a path.
    """
    if word is None or word == PACKAGE:
        return None, None
    if word in SHIPPED:
        return None, str(word)
    return RunDirectory.open(find_run(word, others=(PACKAGE, *SHIPPED))), None


def load_agent(run: RunDirectory | None, which: str = "best") -> Agent:
    """An agent of a run: ``"best"``, ``"latest"``, or the number of an update.

    If `run` is None, an agent in the package, as for `load_shipped`.
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
    """The agent of a file, a run or the package, and its run if it has one."""
    is_file = word is not None and os.path.isfile(word)  # no error for a name that is too long
    run, name = (None, str(word)) if is_file else find_agent(word)
    if name and checkpoint not in ("best", name):
        raise ConfigError(f"{name} is one agent, so it has no checkpoint {checkpoint}.")
    if is_file and name:
        return None, read_agent(Path(name))
    return run, load_agent(run, name or checkpoint)


def load_named(word: str) -> Agent:
    """As `open_agent`; a run means its best agent, ``RUN@100`` the agent of update 100."""
    name, at, which = word.rpartition("@")
    if not at or os.path.exists(word):
        return open_agent(word)[1]
    return load_agent(find_agent(name)[0], which)


def settle_opponents(configs: Iterable[Config]) -> list[Config]:
    """Check that every opponent can be loaded, and return the configurations; writes nothing.

    ``latest`` becomes the name of that run, because another one will soon be the latest.
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
    """The parameters of the agent that a run's training plays against, or None.

    The first call copies them into the run, rounded, and later calls read the copy: the original
    may change or go. Another word has another file, so a process that dies between writing this
    file and the configuration mixes up nothing.
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
    except RunError as error:
        what = f"--opponent to be {', '.join(NO_AGENT)}, a run or an agent's file"
        raise ConfigError(
            expected(what, repr(word), did_you_mean(word, NO_AGENT, "check its name"))
        ) from error
    if agent.algorithm != "ppo":
        got = f"{word}, which is of {agent.algorithm}"
        what = "--opponent to be an agent of PPO"
        raise ConfigError(expected(what, got, "choose another"))
    return agent


def name_strength(about: dict[str, Any]) -> str:
    """How well an agent plays, in a word; `about` is `Agent.about`.

    An agent in the package has its own name. For others the return of an evaluation counts, or else
    the training's estimate.

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
    """Play a game with one of a run's agents; `episode` is its index in an evaluation."""
    agent = load_agent(run, checkpoint)
    name = "the agent in the package" if run is None else run.path.name
    return play_game(agent, name, 0 if run is None else run.config.seed, episode, is_greedy)


def play_game(
    agent: Agent, name: str, seed: int, episode: int, is_greedy: bool = True
) -> ChosenReplay:
    """Play a game with an agent, as the evaluation with this seed would."""
    replay = agent.play_episode(seed, episode, is_greedy=is_greedy)
    title = (
        f"{name}, update {agent.about.get('update', 0)}, {'greedy' if is_greedy else 'sampled'} "
        f"episode {episode}, return {signed(replay.episode_return, 0)}"
    )
    return ChosenReplay(replay, agent, title)
