"""The functions behind the commands; each command is one of them, with the same defaults.

A result can print itself: ``print(evaluate("latest"))`` prints the same as ``pixelpong evaluate
latest``, and ``to_dict()`` returns what the command prints with ``--json``. Ctrl-C raises
`KeyboardInterrupt`, whose `result` is the result so far, if there is one.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pixelpong.config import OPTIONS, Config, require_used
from pixelpong.config.presets import load_preset, require_fit
from pixelpong.config.protocols import PONG
from pixelpong.errors import ConfigError, PixelpongError, as_argument, number_of, warn
from pixelpong.faces.arguments import (
    AGENT,
    CHECKPOINT,
    GREEDY,
    SAMPLED,
    SEED,
    Argument,
    Help,
    command,
)
from pixelpong.faces.comparing import describe_sweep, describe_tournament
from pixelpong.faces.looking import export, plot, record, runs, version
from pixelpong.faces.opening import dashboard, play, watch
from pixelpong.faces.report import Result, show_count, tell
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


@command
def evaluate(
    agent: Annotated[str | Path | Run | Policy, AGENT] = "package",
    episodes: Annotated[Positive, Help("Number of episodes.")] = 100,
    *,
    checkpoint: Annotated[int | str, CHECKPOINT] = "best",
    sampled: Annotated[bool, SAMPLED] = False,
    greedy: Annotated[bool, GREEDY] = False,
    seed: Annotated[Count, SEED] = 0,
    in_gymnasium: Annotated[
        bool,
        Help("Play in Gymnasium's own, slower game, such as ALE/Pong-v5, which takes no options."),
    ] = False,
    **options: Any,
) -> Evaluation:
    """Evaluate an agent: play a number of episodes and report the mean return.

    In Python, the agent may also be a `Run` or a `Policy`. The other options are those of the
    environment and of the engine, such as ``sticky=0.0`` or ``workers=2``; by default the agent
    plays by its own protocol. Actions are greedy in Pong, and sampled in other games, where greedy
    play often gets stuck.

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
    from pixelpong.evaluation import configure_play, evaluate_params
    from pixelpong.faces.policy import Policy

    if isinstance(agent, Policy) and checkpoint != "best":
        advice = "load it from that checkpoint, or evaluate its run"
        raise ConfigError(f"A Policy has no other checkpoints; {advice}.", options=["checkpoint"])
    if sampled and greedy:
        raise ConfigError("Give either sampled or greedy, not both.", options=["sampled", "greedy"])
    policy = agent if isinstance(agent, Policy) else Policy.load(agent, checkpoint)
    sampled = sampled or not (greedy or policy.protocol.plays_greedy)
    if in_gymnasium and options:
        given = ", ".join(options)
        raise ConfigError(f"evaluate: Gymnasium's game takes no options. Leave out {given}.")
    config = Config(game=policy.protocol.game)
    if not in_gymnasium:
        config = configure_play(policy.algorithm, policy.protocol, options)
    show = functools.partial(show_count, total=episodes, noun="episodes")
    with stoppable() as should_stop:
        if in_gymnasium:
            result = policy.evaluate_in_gymnasium(seed, episodes, sampled, should_stop, show)
        else:
            result = evaluate_params(
                config, policy.params, policy.scene, seed=seed, episodes=episodes,
                is_greedy=not sampled, should_stop=should_stop, tell=show,
            )  # fmt: skip
    about = config.protocol.to_dict() | {
        "agent": policy.name,
        "update": policy.about.get("update"),
        "sampled": sampled,
        "in_gymnasium": in_gymnasium,
        "seed": seed,
        "episodes": episodes,
    }
    return dataclasses.replace(result, protocol=str(config.protocol), about=about)


@command
def tournament(
    *players: Annotated[
        str,
        Argument(
            "Agents (a run, RUN@UPDATE, an agent's file, beginner, club, strong, champion), "
            "builtin, or a script: perfect (follows the ball at once), predictor (knows where it "
            "will arrive), person (sees it after 200 ms and misjudges it).",
            usage="PLAYER PLAYER...",
        ),
    ],
    games: Annotated[Positive, Help("Games of each pair on each side.")] = 10,
    points: Annotated[int, Meta(ge=1, le=21), Help("Points needed to win a game.")] = 21,
    sampled: Annotated[bool, SAMPLED] = False,
    out: Annotated[Path | None, Help("JSON file for the results.", short="-o")] = None,
    seed: Annotated[Count, Help("Seed of the games.", short="-s")] = 0,
    workers: Annotated[Number | None, Help("Worker processes; by default one per core.")] = None,
) -> Result:
    """Play every pair of players on both sides, and rate the players."""
    from pixelpong.run.files import require_writable, write_whole
    from pixelpong.tournaments.games import Rules, find_players
    from pixelpong.tournaments.tournament import count_games, hold_tournament, summarize

    rules, entrants = Rules(seed, not sampled, points), find_players(players)
    total = count_games(entrants, games)
    show = functools.partial(show_count, total=total, noun="games")
    if out:
        require_writable(out)
    with stoppable() as should_stop:
        workers = workers or count_cores()
        played, failure = hold_tournament(entrants, games, rules, workers, should_stop, show)
        show(total)
    error: PixelpongError | Stopped | None = failure
    if error is None and len(played) < total:
        error = Stopped("some games were not played", None)
    if error and not played:
        raise error
    facts = summarize(entrants, played, games, rules)
    result = Result(facts, describe_tournament(facts))
    if out:
        write_whole(out, json.dumps(facts, indent=1).encode() + b"\n")
    if error:
        error.result = result
        raise error
    return result


@command
def sweep(
    grid: Annotated[
        str | Path | None,
        Argument(
            "TOML file of options, which may be lists; or a sweep to continue: its folder, or its "
            "name in runs."
        ),
    ] = None,
    *,
    seeds: Annotated[int | str | None, Help("Seeds, such as 0-4 or 0,3,7.")] = None,
    games: Annotated[
        str | None, Help("Games by ale-py's names, such as breakout,seaquest, or all.")
    ] = None,
    out: Annotated[
        Path | None, Help("New folder; by default the next free runs/sweep-NNN.", short="-o")
    ] = None,
    engine: Annotated[
        Literal["ray", "serial"] | None, Help("Where to train; by default Ray if it is installed.")
    ] = None,
    ray_address: Annotated[
        str | None, Help("A running Ray cluster, auto or HOST:PORT; by default a new local one.")
    ] = None,
    threads_each: Annotated[
        Number | None, Help("Threads per run; by default 1 with Ray, else one per core.")
    ] = None,
    **options: Any,
) -> Result:
    """Train agents with several seeds, games or options, or continue a sweep.

    The other options are training options, for every run.
    """
    from pixelpong.sweeps.jobs import open_trainer
    from pixelpong.sweeps.sweep import create_sweep
    from pixelpong.sweeps.training import find_started, plan_sweep, train_sweep

    has_options = bool(options or out) or seeds is not None or games is not None
    path = find_started(grid, has_options=has_options)
    configs = [] if path else plan_sweep(grid, seeds, games, options)
    opened_trainer = open_trainer(resume, engine, ray_address, threads_each)
    with stoppable() as should_stop, opened_trainer as trainer:
        path = path or create_sweep(out, configs)
        facts = train_sweep(path, trainer, should_stop, tell, _draw_sweep)
        facts["resume"] = f"pixelpong sweep {as_argument(path)}"
        has_left = not all(run["is_done"] for run in facts["runs"])
        result = Result(facts, describe_sweep(facts), exit_code=1 if has_left else 0)
        if should_stop() and has_left:
            raise Stopped(f"continue with {facts['resume']}", result)
    return result


def _draw_sweep(path: Path) -> None:
    """Plot the finished runs in the sweep's folder; no result depends on the picture."""
    from pixelpong.faces import plots
    from pixelpong.sweeps.sweep import read_sweep

    done = [record for record in read_sweep(path) if record.is_done]
    if done:
        try:
            plots.plot(done, "sweep", path / "sweep.svg")
        except PixelpongError as error:
            warn(f"could not draw sweep.svg: {error}")


@command
def verify(
    *,
    presets: Annotated[
        str | None,
        Help(
            "Presets to train, separated by commas; by default fast,classic in Pong and atari in "
            "other games."
        ),
    ] = None,
    engines: Annotated[str, Help("Engines to compare, separated by commas.")] = "serial,threads",
    updates: Annotated[Positive, Help("Number of updates.")] = 3,
    batch_size: Annotated[
        Number, Help("Size of the test run: episodes per update, or games in parallel.")
    ] = 4,
    seed: Annotated[Count, Help("Seed of the run.", short="-s")] = 0,
    game: Annotated[
        str,
        Help("A game by ale-py's name, such as breakout. It is played next to ALE, and trained."),
    ] = "pong",
    **options: Any,
) -> Result:
    """Check that the game matches ALE bit for bit, and that training is reproducible.

    The other options are those of the environment.
    """
    from pixelpong.verification import compare_ways

    presets = presets or ("fast,classic" if game == PONG else "atari")
    names = [OPTIONS["engine"].check(name, "--engines") for name in engines.split(",")]
    changes: dict[str, Any] = {
        "updates": updates,
        "until_return": None,
        "batch_size": batch_size,
        "seed": seed,
    }
    changes |= {"batch_size": batch_size, "num_envs": batch_size, "verbose": False}
    changes |= {"game": game, "final_episodes": 0}
    configs = [
        load_preset(name).updated(changes | options, "verify") for name in presets.split(",")
    ]
    if "opponent" in options:  # REINFORCE always plays against the built-in opponent
        configs = [config for config in configs if config.algorithm == "ppo"] or configs
    for config in configs:
        require_used(options, config, "verify")
        require_fit(config)
    compared = _verify_game(game, seed)
    tell(compared.text)
    ways = []
    with stoppable() as should_stop:
        for config in configs:
            for way in compare_ways(config, names, should_stop):
                ways.append({"preset": config.preset, **way})
                word = "same" if way["is_same"] else "DIFFERENT"
                tell(f"{way['params_sha256'][:16]}  {word:9}  {config.preset}, {way['name']}")
    same_bits = all(way["is_same"] for way in ways)
    result = f"all {len(ways)} ways gave the same bits" if same_bits else "the bits differ"
    is_equal, differs_at = same_bits and compared.facts["is_equal"], compared.facts["differs_at"]
    facts = {"is_equal": is_equal, "differs_from_ale_at": differs_at, "game": game, "ways": ways}
    name = presets if game == PONG else game
    return Result(facts, f"{name}: {result}", exit_code=0 if is_equal else 1)


def _verify_game(name: str, seed: int) -> Result:
    """Compare any game with ALE; Pong as the agents play it."""
    from pixelpong.atari.games.rules import open_cartridge
    from pixelpong.atari.machine.compiled import load_game
    from pixelpong.pong.native import PONG as CARTRIDGE
    from pixelpong.verification import compare_with_ale

    game = open_cartridge(CARTRIDGE) if name == PONG else load_game(name, tell)
    comparison = compare_with_ale(game, seed)
    frames, starts = number_of(comparison.frames, "frame"), number_of(comparison.starts, "start")
    # Wrong pictures do not end the comparison, so they come first.
    difference = comparison.picture_difference or comparison.difference
    if difference:
        result = f"DIFFERENT from ALE: {difference}"
    else:
        pictures = number_of(comparison.pictures, "picture")
        result = f"memory, rewards, lives, ends and {pictures} as on ALE"
    facts = {"is_equal": not difference, "game": name, **dataclasses.asdict(comparison)}
    text = f"{frames} of {name} from {starts}: {result}"
    return Result(facts, text, exit_code=1 if difference else 0)
