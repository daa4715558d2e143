"""A run in a notebook: its curves and its games.

    from pixelpong import Run
    run = Run("runs/fast-001")
    run.plot()                      the learning curve
    run.plot("health")              see `pixelpong.faces.plots` for the kinds
    run.plot(others=["runs/fast-002"])
    run.replay()                    20 seconds of a game of the best agent, as a film
    run.replay("latest")            the same for the newest agent
    run.metrics()["entropy"]        a NumPy array
    pandas.DataFrame(run.metrics()) the same as a table

The notebook displays the returned objects without a window; `save` writes them to files.
"""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pixelpong.agent.choice import Agents
from pixelpong.agent.file import Agent
from pixelpong.config import Config
from pixelpong.errors import PixelpongError, RunError, number_of
from pixelpong.faces.look.media import Media
from pixelpong.faces.plots import KINDS, draw_plot
from pixelpong.faces.policy import Policy
from pixelpong.faces.report import describe_ending, resume_command
from pixelpong.loop import Ended
from pixelpong.machine import count_cores, describe_machine
from pixelpong.run.names import find_run
from pixelpong.run.record import Record
from pixelpong.run.words import describe_times


class Run(Record):
    """A run to look at, in its state at the time of opening; nothing here changes the run.

    If there is an `outcome`, this process has just trained the run, and ``print(run)`` reports it.
    """

    def __init__(
        self, path: str | Path, outcome: Ended | None = None, *, is_brief: bool = False
    ) -> None:
        """Open a run by its directory, its name in the folder ``runs``, or ``"latest"``."""
        super().__init__(find_run(path))
        if self.run is None:
            raise RunError(self.problem)
        self._directory = self.run
        self.outcome, self._is_brief = outcome, is_brief

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.path.resolve() == other.path.resolve()

    def __hash__(self) -> int:
        return hash(self.path.resolve())

    @property
    def config(self) -> Config:
        """The configuration of the run."""
        return self._directory.config

    def metrics(self) -> dict[str, NDArray[Any]]:
        """Return all metrics of all updates, as arrays by name; NaN where a metric is missing."""
        return self.columns()

    def agents(self) -> list[int]:
        """List the updates whose agents are saved; `agent` loads one."""
        return self._directory.list_agents()

    def agent(self, which: int | str = "best") -> Agent:
        """Load the agent of an update, or ``"best"`` or ``"latest"``."""
        return Agents.of_run(self._directory).load(str(which))

    def plot(self, kind: str = "curve", *, others: Iterable[str | Path | Run] = ()) -> Media:
        """Plot the ``curve`` or the ``health`` of this run, and of others to compare."""
        runs = [self, *(other if isinstance(other, Run) else Run(other) for other in others)]
        content = draw_plot(runs, kind, "png")
        return Media(content, f"{kind} of {', '.join(run.path.name for run in runs)}")

    def replay(self, checkpoint: int | str = "best", episode: int = 0, **how: Any) -> Media:
        """Film a game of one of its agents; see `Policy.replay`."""
        return Policy.load(self, checkpoint).replay(episode, **how)

    def _repr_html_(self) -> str:
        """Return the text of `repr` with the result in bold, and the learning curve if possible."""
        title, summary, *rows = (html.escape(row.strip()) for row in repr(self).splitlines())
        text = f"<p>{title}<br><b>{summary}</b><br>{'<br>'.join(rows)}</p>"
        with contextlib.suppress(PixelpongError):  # no update yet, or no matplotlib
            text += self.plot("curve")._repr_html_()
        return text

    def __repr__(self) -> str:
        progress = [
            f"update {self.update}",
            number_of(self.episodes, "episode"),
            number_of(self.steps, "step"),
            describe_times(self.training_seconds, self.total_seconds),
        ]
        rows = [
            f"Run('{self.path}'): {self.config.preset} on {self.config.protocol}",
            self.summary,
            ", ".join(filter(None, progress)),
            f"{number_of(len(self.agents()), 'agent')} saved",
            f".plot(kind) with {', '.join(KINDS)}; .replay(); .metrics(); .agents(); .config",
        ]
        return "\n  ".join(rows)

    def __str__(self) -> str:
        if self.outcome is None:
            return repr(self)
        return describe_ending(self.to_dict(), self.outcome, is_brief=self._is_brief)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON, with the outcome of training if it was just trained."""
        facts, outcome = super().to_dict(), self.outcome
        if outcome is None:
            return facts
        return facts | {
            "reason": outcome.reason,
            "resume": resume_command(self.path, self.config),
            "params_sha256": outcome.params_sha256,
            "environment": self.config.protocol.environment,
            "machine": f"{count_cores()} cores of {describe_machine()['processor'].split(',')[0]}",
        }
