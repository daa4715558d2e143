"""The functions behind the commands: each command is one of them, with the same defaults.

A result prints itself: ``print(evaluate("latest"))`` prints what ``pixelpong evaluate latest``
does, and ``to_dict()`` returns what that prints with ``--json``. Ctrl-C raises `KeyboardInterrupt`,
whose `result` is the result so far, if there is one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pixelpong.config import OPTIONS, Config, require_used
from pixelpong.config.presets import load_preset, read_toml
from pixelpong.errors import ConfigError, PixelpongError, expected, number_of, warn
from pixelpong.faces.checks import checked
from pixelpong.faces.looking import dashboard, export, play, plot, record, runs, version, watch
from pixelpong.faces.report import Result, count, describe_tournament, describe_trainings, tell
from pixelpong.faces.training import Stopped, resume, stoppable, train
from pixelpong.machine import count_cores
from pixelpong.schema import Count, Meta, Number, Positive

if TYPE_CHECKING:
    from pixelpong.faces.notebook import Run
    from pixelpong.faces.policy import Policy
    from pixelpong.run.lines import Evaluation

__all__ = [
    "dashboard", "evaluate", "export", "play", "plot", "record", "resume", "runs", "sweep",
    "tournament", "train", "verify", "version", "watch",
]  # fmt: skip


@checked
def evaluate(
    agent: str | Path | Run | Policy = "package",
    episodes: Positive = 100,
    *,
    checkpoint: int | str = "best",
    sampled: bool = False,
    seed: Count = 0,
    in_gymnasium: bool = False,
    **options: Any,
) -> Evaluation:
    """Evaluate an agent: play a number of episodes and report the mean return.

    In Python, the agent may also be a `Run` or a `Policy`.

    Args:
        agent: a run (a directory, a name in ``runs``, or ``"latest"``), an agent's file, or
            ``"package"``, ``"beginner"``, ``"club"``, ``"strong"``, ``"champion"``.
        episodes: number of episodes.
        checkpoint: which agent of a run: ``"best"``, ``"latest"`` or an update; if that update has
            no saved agent, the closest one that has.
        sampled: draw the actions, as in training, instead of taking the most probable ones.
        seed: seed of the episodes; greedy and sampled play of a seed have the same sticky frames.
        in_gymnasium: play in Gymnasium's own, slower ``ALE/Pong-v5``, which accepts no options.
        options: of the environment and of the engine, such as ``sticky=0.0`` or ``workers=2``; by
            default the agent's own protocol is used.

    Raises:
        ConfigError: a number is out of range, or an option does not belong here.
        RunError: there is no such run.
        CheckpointError: there is no such agent, or it is damaged.
        WorkerError: a worker raised, or failed too often.
        KeyboardInterrupt: Ctrl-C was pressed.

    >>> evaluation = evaluate("package", episodes=1, engine="serial", sticky=0.0)
    >>> evaluation.returns
    (21.0,)
    """
    from pixelpong import evaluation
    from pixelpong.engines import make_engine
    from pixelpong.faces.policy import Policy
    from pixelpong.play.worker import make_worker

    policy = agent if isinstance(agent, Policy) else Policy.load(agent, checkpoint)
    if in_gymnasium and options:
        got = ", ".join(options)
        raise ConfigError(f"evaluate: Games in Gymnasium take no options: leave out {got}.")
    config = Config() if in_gymnasium else _configure(policy, options)
    tell = functools.partial(count, total=episodes, what="episodes")
    with stoppable() as should_stop:
        if in_gymnasium:
            found = policy.evaluate_in_gymnasium(seed, episodes, sampled, should_stop, tell)
        else:
            make = functools.partial(make_worker, config)
            with contextlib.closing(make_engine(config, make, should_stop)) as engine:
                played = evaluation.play_games(
                    engine, policy.params, seed=seed, episodes=episodes,
                    is_greedy=not sampled, tell=tell,
                )  # fmt: skip
                found = evaluation.describe_games(played, seed)
    about = config.protocol.to_dict() | {
        "agent": policy.name,
        "update": policy.about.get("update"),
        "sampled": sampled,
        "in_gymnasium": in_gymnasium,
        "seed": seed,
        "episodes": episodes,
    }
    return dataclasses.replace(found, protocol=str(config.protocol), about=about)


def _configure(policy: Policy, options: dict[str, Any]) -> Config:
    """The configuration of an agent's workers: its own protocol, unless `options` say otherwise."""
    known = [it.name for it in OPTIONS.values() if it.section in ("environment", "engine")]
    for name in options:
        if name in OPTIONS and name not in known:
            what, advice = "an option of environment or engine", f"use one of {', '.join(known)}"
            raise ConfigError("evaluate: " + expected(what, name, advice))
    own: dict[str, Any] = {"algorithm": policy.algorithm}
    if "environment" not in options:
        game, (low, high) = policy.protocol, policy.protocol.frame_skips
        own |= {"environment": game.environment, "frame_skip": low if low == high else None}
        own |= {"sticky": game.sticky, "max_frames": game.max_frames}
    return Config().updated(own | options, "evaluate")


@checked
def tournament(
    *players: str,
    games: Positive = 10,
    points: Annotated[int, Meta(ge=1, le=21)] = 21,
    sampled: bool = False,
    out: Path | None = None,
    seed: Count = 0,
    workers: Number | None = None,
) -> Result:
    """Play every pair of players on both sides, and rate the players.

    Args:
        players: agents (a run, RUN@UPDATE, an agent's file, ``"beginner"``, ``"club"``,
            ``"strong"``, ``"champion"``), ``"builtin"``, or a script: ``"perfect"`` (follows the
            ball at once), ``"predictor"`` (knows where it will arrive), ``"person"`` (sees it after
            200 ms and misjudges it).
        games: games of each pair on each side.
        points: points needed to win a game.
        sampled: draw the agents' actions instead of taking the most probable ones.
        out: JSON file for the results.
        seed: seed of the games.
        workers: processes to play in; by default one per core.
    """
    from pixelpong.run.files import require_place, write_whole
    from pixelpong.tournaments.games import Rules, find_players
    from pixelpong.tournaments.tournament import play_tournament, summarize

    rules, played = Rules(seed, not sampled, points), []
    error: PixelpongError | Stopped | None = None
    found = find_players(players)
    total = games * len(found) * (len(found) - 1)
    if out:
        require_place(out)
    with stoppable() as should_stop:
        try:
            for each in play_tournament(found, games, rules, workers or count_cores(), should_stop):
                played.append(each)
                count(len(played), total, "games")
            if len(played) < total:
                error = Stopped("some games were not played", None)
        except PixelpongError as caught:
            error = caught
        count(total, total, "games")
    if error and not played:
        raise error
    facts = summarize(found, played, games, rules)
    result = Result(facts, describe_tournament(facts))
    if out:
        write_whole(out, json.dumps(facts, indent=1).encode() + b"\n")
    if error:
        error.result = result
        raise error
    return result


@checked
def sweep(
    grid: str | Path | None = None,
    *,
    seeds: int | str | None = None,
    out: Path | None = None,
    engine: Literal["ray", "serial"] | None = None,
    ray_address: str | None = None,
    threads_each: Number | None = None,
    **options: Any,
) -> Result:
    """Train agents with several seeds or options, or continue a sweep.

    Args:
        grid: TOML file of options, which may be lists; or a sweep to continue: its folder, or its
            name in ``runs``.
        seeds: seeds, such as 0-4 or 0,3,7.
        out: new folder; by default the next free ``runs/sweep-NNN``.
        engine: where to train; by default Ray if it is installed.
        ray_address: a running Ray cluster, auto or HOST:PORT; by default a new local one.
        threads_each: threads of each training; by default 1 with Ray, else one per core.
        options: of every training.
    """
    from pixelpong.agent.choice import settle_opponent
    from pixelpong.faces import plots
    from pixelpong.run.directory import lock_folder
    from pixelpong.sweeps.grid import make_grid
    from pixelpong.sweeps.jobs import open_trainer, run_jobs
    from pixelpong.sweeps.sweep import create_sweep, find_left, find_sweep, read_sweep, sum_up

    path = find_sweep(grid) if grid is not None and not Path(grid).is_file() else None
    if path and (options or seeds is not None or out):
        raise ConfigError(f"{path} is a sweep and keeps its own options: leave the others out.")
    if path:
        read_sweep(path)  # it has runs
    if grid is None and seeds is None:
        what = "A sweep needs seeds, such as 0-4, or a file with a grid"
        raise ConfigError(f"{what}.", options=["seeds"])
    configs = []
    if path is None:
        content = read_toml(Path(grid)) if grid else {}
        if seeds is not None:
            content = {**content, "seed": [], "seeds": str(seeds)}
        configs = make_grid(content, options, str(grid or "sweep"))
        settled = {word: settle_opponent(word) for word in {it.opponent for it in configs}}
        configs = [dataclasses.replace(it, opponent=settled[it.opponent]) for it in configs]
    at = open_trainer(resume, engine, ray_address, threads_each)
    with stoppable() as should_stop, at as place:
        path = path or create_sweep(out, configs)
        left, total = find_left(path), len(read_sweep(path))
        tell(f"{path}: {number_of(total, 'run')}, {len(left)} to train")
        with lock_folder(path):
            number = total - len(left)
            for run, event in run_jobs(left, place, should_stop):
                if event is None:
                    number += 1
                    tell(f"{run.name} ({number} of {total}): training")
                else:
                    tell(f"{run.name}: {event}")
            facts, left = sum_up(path), find_left(path)
            facts["resume"] = f"pixelpong sweep {shlex.quote(str(path))}"
            if done := [record for record in read_sweep(path) if record.is_done]:
                try:
                    plots.plot(done, "sweep", path / "sweep.svg")
                except PixelpongError as error:  # no result depends on it
                    warn(f"no picture: {error}")
        result = Result(facts, describe_trainings(facts), exit_code=1 if left else 0)
        if should_stop() and left:
            raise Stopped(f"continue with {facts['resume']}", result)
    return result


@checked
def verify(
    *,
    presets: str = "fast,classic",
    engines: str = "serial,threads",
    updates: Positive = 3,
    batch_size: Number = 4,
    seed: Count = 0,
    game: str = "pong",
    **options: Any,
) -> Result:
    """Check that the game matches ALE bit for bit, and that training is reproducible.

    Args:
        presets: presets to train, separated by commas.
        engines: engines to compare, separated by commas.
        updates: number of updates.
        batch_size: size of the test training: episodes per update, or games in parallel.
        seed: seed of the training.
        game: by ale-py's name, such as ``"breakout"``; only Pong is trained, the others are played.
        options: of the environment.
    """
    from pixelpong.verification import NUM_FRAMES, compare_ways, compare_with_ale

    if game != "pong":
        return _verify_game(game, seed)
    names = [OPTIONS["engine"].check(name, "--engines") for name in engines.split(",")]
    changes = {"updates": updates, "until_return": None, "batch_size": batch_size, "seed": seed}
    changes |= {"num_envs": batch_size, "verbose": False, **options}
    configs = [load_preset(name).updated(changes, "verify") for name in presets.split(",")]
    if "opponent" in options:  # REINFORCE has the built-in one alone
        configs = [each for each in configs if each.algorithm == "ppo"] or configs
    for config in configs:
        require_used(options, config, "verify")
    differs_at = compare_with_ale(seed)
    found = "as on ALE" if differs_at is None else f"DIFFERENT from ALE after frame {differs_at}"
    tell(f"{NUM_FRAMES} frames of the game: memory, reward and picture {found}")
    ways = []
    with stoppable() as should_stop:
        for config in configs:
            for way in compare_ways(config, names, should_stop):
                ways.append({"preset": config.preset, **way})
                word = "same" if way["is_same"] else "DIFFERENT"
                line = f"{way['params_sha256'][:16]}  {word:9}  {config.preset}, {way['name']}"
                tell(line)
    is_same = all(way["is_same"] for way in ways)
    found = f"all {len(ways)} ways gave the same bits" if is_same else "the bits differ"
    is_equal = is_same and differs_at is None
    facts = {"is_equal": is_equal, "differs_from_ale_at": differs_at, "ways": ways}
    return Result(facts, f"{presets}: {found}", exit_code=0 if is_equal else 1)


def _verify_game(name: str, seed: int) -> Result:
    """Compare any game with ALE."""
    from pixelpong.verification import compare_game

    found = compare_game(name, seed, tell)
    compared = (
        f"{number_of(found.frames, 'frame')} of {name} from {number_of(found.starts, 'start')}"
    )
    if is_equal := not found.difference and not found.picture_difference:
        text = f"{compared}: memory and {number_of(found.pictures, 'picture')} as on ALE"
    else:
        what = found.difference or found.picture_difference
        text = f"{compared}: DIFFERENT from ALE: {what}"
    facts = {"is_equal": is_equal, "game": name, **dataclasses.asdict(found)}
    return Result(facts, text, exit_code=0 if is_equal else 1)
