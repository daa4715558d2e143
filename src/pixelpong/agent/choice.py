"""Finding the agent that a word names."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pixelpong.agent.file import SHIPPED, SHIPPED_FOLDER, Agent
from pixelpong.errors import CheckpointError, ConfigError, on_one_line, warn
from pixelpong.items import BUILTIN, HALF, SELF, Params
from pixelpong.run.directory import RunDirectory
from pixelpong.run.names import LATEST, find_run

NO_AGENT = (BUILTIN, SELF, HALF)  # words for opponents that are not names of agents
PACKAGE = "package"  # in place of a run's name: the agents in the package


@dataclass(frozen=True)
class Agents:
    """The agents of a run, of the package or in a file."""

    files: dict[str, list[Path]]  # by the agent's name, oldest first; the first sound file is read
    best: str | None  # the name of the best
    path: Path | None = None  # of the run or file
    run: RunDirectory | None = None

    @classmethod
    def of_run(cls, run: RunDirectory) -> Agents:
        """The agents of a run, named by their updates."""
        folders, best = (run.checkpoints, run.agents), run.checkpoints.find_best()
        files = {str(it): [folder.path(it) for folder in folders] for it in run.list_agents()}
        return cls(files, None if best is None else str(best), run.path, run)

    def load(self, which: str = "best") -> Agent:
        """Load an agent by name; ``"best"`` and ``"latest"`` are names too.

        If a run's file is damaged, the other file of the same update is read; failing that, in
        place of the best or the latest, the newest agent that can be read. A warning says so.
        """
        order = [*self.files][::-1]
        if which == "best" and self.best is not None:
            order.sort(key=lambda name: name != self.best)
        elif which not in ("best", "latest"):
            order = [which] if which in self.files else []
        if not order:
            listed = ", ".join([*self.files, "best", "latest"] if self.files else ["none"])
            at = f"at update {which}" if which.isdecimal() else f"as {which!r}"
            raise CheckpointError(on_one_line(f"No agent was saved {at}. Saved: {listed}."))
        problems = []
        for path in itertools.chain.from_iterable(self.files[name] for name in order):
            try:
                agent = Agent.read(path, is_own=self.run is not None)
            except CheckpointError as error:
                if self.run is None or os.path.lexists(path):  # a training has not just removed it
                    problems.append(str(error))
                continue
            if problems:
                warn(f"{'; '.join(problems)}; using the agent of update {agent.about['update']}")
            return agent
        raise CheckpointError("; ".join(problems) or "These agents have just been removed.")


def find_agents(
    word: str | Path | None, which: str = "best", others: Iterable[str] = ()
) -> tuple[Agents, str]:
    """Find where the agent is that a word names; return the agents there, and its name.

        agents/000120.safetensors   a file, of any origin
        package, champion, club     an agent in the package; None means the same as ``package``
        fast-001, latest            a run's agent `which`, see `Agents.load`
        fast-001@120                the run's agent of update 120

    Files take precedence over the package: ``./club`` is a path. `others` are words that the caller
    also accepts; an error suggests them.
    """
    word = PACKAGE if word is None else word
    name, at, named = str(word).rpartition("@")
    if at and not os.path.exists(word):  # raises no error for a name that is too long
        word, which = name, named
    is_file = os.path.isfile(word) or str(word).endswith(".safetensors")
    if (is_file or word in SHIPPED) and which not in ("best", word):
        raise ConfigError(f"{word} is a single agent: leave out the checkpoint {which}.")
    if is_file:
        return Agents({"best": [Path(word)]}, "best", Path(word)), which
    if word == PACKAGE or word in SHIPPED:
        files = {name: [SHIPPED_FOLDER / f"{name}.safetensors"] for name in SHIPPED}
        return Agents(files, SHIPPED[-1]), which if word == PACKAGE else str(word)
    return Agents.of_run(RunDirectory(find_run(word, (PACKAGE, *SHIPPED, *others)))), which


def open_agent(
    word: str | Path | None, which: str = "best", others: Iterable[str] = ()
) -> tuple[RunDirectory | None, Agent]:
    """Load the agent that a word names, see `find_agents`; also return its run if it has one."""
    found, which = find_agents(word, which, others)
    return found.run, found.load(which)


def settle_opponent(word: str) -> str:
    """Check that an opponent can be loaded, and return the word to record; nothing is written.

    ``latest`` becomes the name of that run, because another run will soon be the latest.
    """
    if word in NO_AGENT:
        return word
    _load_opponent(word)
    run, at, which = word.partition("@")
    if run == LATEST and not os.path.isfile(word):
        word = f"{find_run(LATEST)}{at}{which}"
    return word


def keep_opponent(run: RunDirectory) -> Params | None:
    """The parameters of the agent that a run's training plays against, or None.

    The first call copies them into the run, rounded, and later calls read the copy, because the
    original may change or be deleted. Each word has its own file, so a process that dies between
    writing this file and the configuration does no harm.
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
    """The agent that a training plays against."""
    _, agent = open_agent(word, others=NO_AGENT)
    if agent.algorithm != "ppo":
        why = f"{word} was trained with {agent.algorithm}"
        raise ConfigError(f"An opponent must be a PPO agent, but {why}. Choose another one.")
    return agent
