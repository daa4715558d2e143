"""Finding the agent that a word names."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pixelpong.agent.file import SHIPPED, SHIPPED_FOLDER, Agent
from pixelpong.config.protocols import PONG
from pixelpong.errors import CheckpointError, ConfigError, on_one_line, warn
from pixelpong.items import BUILTIN, HALF, SELF, Params
from pixelpong.run.directory import RunDirectory
from pixelpong.run.names import LATEST, find_run
from pixelpong.run.record import Record

NO_AGENT = (BUILTIN, SELF, HALF)  # opponents that are not agents with a name
PACKAGE = "package"  # used like a run's name, for the agents in the package


@dataclass(frozen=True)
class Agents:
    """The agents of a run, of the package or in a file."""

    # The files of each agent by its name, oldest agent first. The first undamaged file is read.
    files: dict[str, list[Path]]
    best: str | None  # the name of the best agent; None if there are no agents
    path: Path | None = None  # the path of the run or file
    run: RunDirectory | None = None

    @classmethod
    def of_run(cls, run: RunDirectory) -> Agents:
        """Return the agents of a run, named by their updates.

        The best agent is the one with the best evaluation, by the lower end of the interval. If no
        agent has been evaluated, it is the newest one, because later learning counts for more than
        the training returns of earlier agents.
        """
        updates, best = run.list_agents(), run.checkpoints.find_best_evaluated()
        if best is None:
            best = max(updates, default=None)
        folders = run.checkpoints, run.agents
        files = {str(update): [folder.path(update) for folder in folders] for update in updates}
        return cls(files, None if best is None else str(best), run.path, run)

    def choose(self, which: str) -> str:
        """Return the name of the agent meant by `which`, a name or the update closest to a number.

        If they differ, it prints a warning. ``"best"`` and ``"latest"`` also work.
        """
        if which in self.files or which in ("best", "latest"):
            return which
        updates = [int(name) for name in self.files if name.isdecimal()]
        if updates and re.fullmatch("[0-9]{1,15}", which):
            closest = min(updates, key=lambda update: (abs(update - int(which)), update))
            if closest != int(which):
                what = f"No agent was saved at update {which}"
                warn(f"{what}; this is update {closest}, the closest one saved.")
            return str(closest)
        raise self._lacks(which)

    def _lacks(self, which: str) -> CheckpointError:
        listed = ", ".join([*self.files, "best", "latest"] if self.files else ["none"])
        at = f"at update {which}" if which.isdecimal() else f"as {which!r}"
        return CheckpointError(on_one_line(f"No agent was saved {at}. Saved: {listed}."))

    def load(self, which: str = "best") -> Agent:
        """Load an agent by a name or a number, see `choose`.

        If a run's file is damaged, the other file of the same update is read. If that fails too, it
        prints a warning, and the newest readable agent replaces the best or the latest.
        """
        which = self.choose(which)
        order = list(reversed(self.files))
        if which == "best":
            order.sort(key=lambda name: name != self.best)
        elif which != "latest":
            order = [which]
        if not order:
            raise self._lacks(which)
        problems = []
        for path in itertools.chain.from_iterable(self.files[name] for name in order):
            try:
                agent = Agent.read(path, is_of_run=self.run is not None)
            except CheckpointError as error:
                if self.run is None or os.path.lexists(
                    path
                ):  # ignores an agent that the run has just removed
                    problems.append(str(error))
                continue
            if problems:
                warn(f"{'; '.join(problems)}; using the agent of update {agent.about['update']}")
            return agent
        raise CheckpointError("; ".join(problems) or "These agents have just been removed.")


def find_agents(
    word: str | Path | Record | None, which: str = "best", others: Iterable[str] = ()
) -> tuple[Agents, str]:
    """Find the agent that a word names; return all agents of its run or package, and its name.

        agents/000120.safetensors   a file, of any origin
        package, champion, club     an agent in the package; None stands for ``package``
        fast-001, latest            a run's agent `which`, see `Agents.choose`
        fast-001@120                the run's agent from update 120, or the closest one

    Files take precedence over the package: ``./club`` is a path. `others` are words that the caller
    also accepts; an error suggests them.
    """
    if word is None:
        word = PACKAGE
    elif isinstance(word, Record):
        word = word.path
    if not isinstance(word, str | Path):
        raise ConfigError(on_one_line(f"{word!r} is not an agent. Give a name, a path, or a Run."))
    name, at, named = str(word).rpartition("@")
    if at and not os.path.exists(word):  # `os.path` raises no error for a name that is too long
        word, which = name, named
    is_file = os.path.isfile(word) or str(word).endswith(".safetensors")
    if (is_file or word in SHIPPED) and which not in ("best", word):
        raise ConfigError(f"{word} has only one agent; leave out the checkpoint {which}.")
    if is_file:
        return Agents({"best": [Path(word)]}, "best", Path(word)), which
    if word == PACKAGE or word in SHIPPED:
        files = {name: [SHIPPED_FOLDER / f"{name}.safetensors"] for name in SHIPPED}
        return Agents(files, SHIPPED[-1]), which if word == PACKAGE else str(word)
    agents = Agents.of_run(RunDirectory(find_run(word, (PACKAGE, *SHIPPED, *others))))
    return agents, agents.choose(which)


def settle_update(word: str, others: Iterable[str] = ()) -> str:
    """Replace the update in an agent's name by the closest saved one, such as @100 by @80."""
    name, at, _ = word.rpartition("@")
    if not at or os.path.exists(word):
        return word
    _, which = find_agents(word, others=others)
    return f"{name}@{which}"


def open_agent(
    word: str | Path | Record | None, which: str = "best", others: Iterable[str] = ()
) -> tuple[RunDirectory | None, Agent]:
    """Load the agent that a word names, see `find_agents`; also return its run if it has one."""
    agents, which = find_agents(word, which, others)
    return agents.run, agents.load(which)


def require_pong(agent: Agent, name: object) -> Agent:
    """Return an agent if it plays Pong; refuse to let an agent of another game play against one."""
    if (game := agent.protocol.game) != PONG:
        what = f"{name} plays {game}, and only Pong has two sides"
        raise ConfigError(on_one_line(f"{what}. Choose an agent of Pong, such as {SHIPPED[-1]}."))
    return agent


def settle_opponent(word: str) -> str:
    """Check that an opponent can be loaded, and return the word to record; nothing is written.

    ``latest`` becomes the name of that run, because another run will soon be the latest.
    """
    if word in NO_AGENT:
        return word
    word = settle_update(word, NO_AGENT)
    _load_opponent(word)
    run, at, which = word.partition("@")
    if run == LATEST and not os.path.isfile(word):
        word = f"{find_run(LATEST)}{at}{which}"
    return word


def keep_opponent(run: RunDirectory) -> Params | None:
    """Return the parameters of the agent that a run plays against, or None.

    The first call copies them into the run, rounded. Later calls read the copy, because the
    original may change or be deleted. Each word has its own file, so a process that dies between
    writing this file and writing the configuration does no harm.
    """
    word = run.config.opponent
    if word in NO_AGENT:
        return None
    path = run.path / f"opponent-{hashlib.sha256(word.encode()).hexdigest()[:12]}.safetensors"
    if not path.exists():
        _load_opponent(word).write(path)
    params = Agent.read(path).params
    return {name: w.astype(run.config.dtype) for name, w in params.items()}


def _load_opponent(word: str) -> Agent:
    """Load the agent that a run is to play against."""
    agent = require_pong(open_agent(word, others=NO_AGENT)[1], word)
    if agent.algorithm != "ppo":
        why = f"{word} was trained with {agent.algorithm}"
        raise ConfigError(f"An opponent must be a PPO agent, but {why}. Choose another one.")
    return agent
