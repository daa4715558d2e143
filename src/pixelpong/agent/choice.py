"""The choice of what to look at: a run's agents, and its replays with an agent to explain them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pixelpong.agent.file import Agent, load_milestone, load_shipped
from pixelpong.agent.network import fit_params
from pixelpong.errors import CheckpointError, ConfigError, RunError, expected
from pixelpong.learners import restoring
from pixelpong.learners.progress import Progress
from pixelpong.play.replay import Replay
from pixelpong.run.checkpoints import Checkpoint, fingerprint
from pixelpong.run.directory import RunDirectory


@dataclass(frozen=True)
class ChosenReplay:
    """A replay, and the agent that explains it (`pixelpong.agent.explain`).

    Attributes:
        replay: the episode.
        agent: the one that played it; if that was not saved, the closest one that was.
        is_own: whether it is the one that played it, to the bit.
        title: one line about the episode.
    """

    replay: Replay
    agent: Agent
    is_own: bool
    title: str


def as_agent(run: RunDirectory, checkpoint: Checkpoint) -> Agent:
    """The agent of a checkpoint, to the bit.

    Raises:
        CheckpointError: it belongs to another algorithm, or holds no agent.
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
            run.warn(f"{error}; it is left out")
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
        which: instead of a replay, an agent (`load_agent`), which plays an episode of an
            evaluation.
        episode: the number of the training's episode; with `which`, of the evaluation's.

    Raises:
        ConfigError: both an update and an agent.
        RunError: there is no such replay.
        CheckpointError: there is no such agent, or it is damaged.
    """
    if update is not None and which is not None:
        raise ConfigError(expected("--update or an agent", "both", "leave one of them out"))
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
    # It was played by the params from before this update.
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
