"""Which agent a word names."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pixelpong.agent.file import SHIPPED, Agent, load_shipped
from pixelpong.config import Config
from pixelpong.errors import (
    CheckpointError,
    ConfigError,
    RunError,
    did_you_mean,
    expected,
    on_one_line,
    warn,
)
from pixelpong.items import BUILTIN, HALF, SELF, Params
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import NumberedFiles
from pixelpong.run.names import LATEST, find_run

NO_AGENT = (BUILTIN, SELF, HALF)  # opponents that are not an agent's name
PACKAGE = "package"  # used as a run's name: the agents that come with the package

# The word for an agent below each return; above them all it is a champion.
_STRENGTHS = ((-19.0, "untrained"), (-5.0, "beginner"), (8.0, "club"), (18.0, "strong"))


def open_agent(word: str | Path | None, which: str = "best") -> tuple[RunDirectory | None, Agent]:
    """The agent that a word names, and its run if it has one.

        agents/000120.safetensors   a file, of any origin
        package, champion, club     an agent in the package; None means the same as ``package``
        fast-001, latest            a run's agent `which`, see `load_agent`
        fast-001@120                the run's agent of update 120

    A path to a file comes first, then the package: ``./club`` is a path.
    """
    if word is not None and os.path.isfile(word):  # no error for a name that is too long
        if which != "best":
            raise ConfigError(f"{word} is one agent, so it has no checkpoint {which}.")
        return None, Agent.read(Path(word))
    name, at, named = str(word or PACKAGE).rpartition("@")
    if at and not os.path.exists(str(word)):
        return open_agent(name, named)
    if word is None or word == PACKAGE:
        return None, load_shipped(which)
    if word in SHIPPED:
        if which not in ("best", word):
            raise ConfigError(f"{word} is one agent, so it has no checkpoint {which}.")
        return None, load_shipped(str(word))
    run = RunDirectory(find_run(word, others=(PACKAGE, *SHIPPED)))
    return run, load_agent(run, which)


def load_agent(run: RunDirectory, which: str = "best") -> Agent:
    """An agent of a run: ``"best"``, ``"latest"``, or the number of an update.

    If a file is damaged, the agent that was saved at the same update is taken, or else, of the best
    and the latest, the newest one that can be read; with a warning.
    """
    saved, checkpoints = run.list_agents(), run.checkpoints.updates()
    if which in ("best", "latest"):
        first = run.checkpoints.find_best() if which == "best" else max(checkpoints, default=None)
        order = sorted(saved, key=lambda update: (update == first, update), reverse=True)
    else:
        order = [update for update in saved if str(update) == which]
    if not order:
        listed = ", ".join([*map(str, saved), "best", "latest"] if saved else ["none"])
        at = f"at update {which}" if which.isdecimal() else f"as {which!r}"
        raise CheckpointError(on_one_line(f"No agent was saved {at}. Saved: {listed}."))
    problems = []
    for update, folder in itertools.product(order, (run.checkpoints, run.agents)):
        try:
            agent = _load(run, folder, update)
        except CheckpointError as error:
            if os.path.lexists(folder.path(update)):  # a training has not just removed it
                problems.append(str(error))
            continue
        if problems:
            warn(f"{'; '.join(problems)}; taking the agent of update {update}")
        return agent
    raise CheckpointError("; ".join(problems) or f"The agents of {run.path} have been removed.")


def _load(run: RunDirectory, folder: NumberedFiles, update: int) -> Agent:
    """The agent of an update in `folder`, which is the checkpoints or the saved agents."""
    if folder is run.agents:
        return Agent.read(folder.path(update))
    found = run.checkpoints.load(update)
    return Agent.of(found.arrays, found.card, folder.path(update))


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
            _load_opponent(word)
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
        _load_opponent(word).write(path)
    params = Agent.read(path).params
    return {name: w.astype(run.config.network.dtype) for name, w in params.items()}


def _load_opponent(word: str) -> Agent:
    """The agent that a training plays against."""
    try:
        _, agent = open_agent(word)
    except RunError as error:
        what = f"--opponent to be {', '.join(NO_AGENT)}, a run or an agent's file"
        raise ConfigError(
            expected(what, repr(word), did_you_mean(word, NO_AGENT, "check its name"))
        ) from error
    if agent.algorithm != "ppo":
        got = f"{word}, which is of {agent.algorithm}"
        raise ConfigError(expected("--opponent to be an agent of PPO", got, "choose another"))
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
