"""Teaches a program to play Atari Pong from its screen, with policy gradients.

The public names, most used first::

    import pixelpong

    run = pixelpong.train("fast", seed=1)           a new run, in runs/fast-001
    run = pixelpong.resume("runs/fast-001", updates=500)
    for event in pixelpong.training("fast"): ...   the same, event by event
    pixelpong.Run("runs/fast-001").plot()           a run: .plot(), .replay(), .metrics()
    pixelpong.evaluate("package", episodes=20)      how well an agent plays, with an interval
    pixelpong.runs("runs/fast-001")                 its result and its hashes; or a list of runs
    pixelpong.plot("latest", out="curve.svg")       its curves in a file
    pixelpong.record("latest", episode=2)           the film of a game in a file
    pixelpong.export("latest")                      its agent in a file
    pixelpong.dashboard()                           the page, until Ctrl-C, in a notebook until
                                                    close(); `watch` opens one game
    pixelpong.sweep(seeds="0-4")                    several runs
    pixelpong.tournament("club", "champion")        games of agents against each other
    pixelpong.verify()                              whether this machine gives the same bits

    policy = pixelpong.Policy.load("package")       an agent that acts on observations
    env = pixelpong.make_env()                      an exact Pong, as a Gymnasium environment
    gymnasium.make("pixelpong.envs:pixelpong/Pong-v0")           the same environment
    envs = pixelpong.make_vec(64, game="breakout")  many games at once; `make_two` is for two agents
    envs = pixelpong.make_sb3(64)                   the same for stable-baselines3
    pixelpong.games()                               the games: names, ids, actions, lives, scores

    pixelpong.preset_names()                        the presets of `train`
    pixelpong.load_preset("fast")                   its options, a `Config`

The errors that users can meet are `PixelpongError`. For the command line, see ``pixelpong --help``.
To read the code, start with ``loop.py``.

Importing this package loads only this file; each name loads its module when it is first used.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pixelpong.config import Config as Config
    from pixelpong.config.presets import load_preset as load_preset
    from pixelpong.config.presets import preset_names as preset_names
    from pixelpong.envs import make_env as make_env
    from pixelpong.envs import make_sb3 as make_sb3
    from pixelpong.envs import make_two as make_two
    from pixelpong.envs import make_vec as make_vec
    from pixelpong.errors import PixelpongError as PixelpongError
    from pixelpong.faces.api import evaluate as evaluate
    from pixelpong.faces.api import sweep as sweep
    from pixelpong.faces.api import tournament as tournament
    from pixelpong.faces.api import verify as verify
    from pixelpong.faces.catalogue import games as games
    from pixelpong.faces.looking import export as export
    from pixelpong.faces.looking import plot as plot
    from pixelpong.faces.looking import record as record
    from pixelpong.faces.looking import runs as runs
    from pixelpong.faces.notebook import Run as Run
    from pixelpong.faces.opening import dashboard as dashboard
    from pixelpong.faces.opening import watch as watch
    from pixelpong.faces.policy import Policy as Policy
    from pixelpong.faces.training import resume as resume
    from pixelpong.faces.training import train as train
    from pixelpong.faces.training import training as training
    from pixelpong.run.lines import Evaluation as Evaluation

# The module of each public name.
_HOMES = {
    "train": "faces.training",
    "training": "faces.training",
    "resume": "faces.training",
    "evaluate": "faces.api",
    "sweep": "faces.api",
    "tournament": "faces.api",
    "verify": "faces.api",
    "runs": "faces.looking",
    "plot": "faces.looking",
    "record": "faces.looking",
    "export": "faces.looking",
    "dashboard": "faces.opening",
    "watch": "faces.opening",
    "Run": "faces.notebook",
    "Policy": "faces.policy",
    "Evaluation": "run.lines",
    "make_env": "envs",
    "make_vec": "envs",
    "make_two": "envs",
    "make_sb3": "envs",
    "games": "faces.catalogue",
    "Config": "config",
    "load_preset": "config.presets",
    "preset_names": "config.presets",
    "PixelpongError": "errors",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, and keep it."""
    if name == "envs":  # the environments' own package, as an attribute before it is imported
        return importlib.import_module(f"{__name__}.envs")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
