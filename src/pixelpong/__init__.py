"""Teaches a program to play Atari Pong from its screen, with policy gradients.

    import pixelpong

    run = pixelpong.train("fast", seed=1)           a new run, in runs/fast-001
    run = pixelpong.resume("runs/fast-001", updates=500)
    pixelpong.Run("runs/fast-001").plot()           a run to look at: .plot(), .replay(), .metrics()
    pixelpong.evaluate("package", episodes=20)      how well an agent plays, with an interval

    policy = pixelpong.Policy.load("package")       an agent that acts on what an environment shows
    env = pixelpong.make_env()                      our exact Pong, as a Gymnasium environment
    gymnasium.make("pixelpong/Pong-v0")             the same one

    pixelpong.preset_names()                        what `train` takes
    pixelpong.load_preset("fast")                   its options, a `Config`

Errors that a user can meet are of the class `PixelpongError`. The same from a terminal:
``pixelpong --help``. Where each part of the code lives is told by the file ``train.py``.

Importing this package loads nothing but this file; a name's own imports come with its first use.
"""

from __future__ import annotations

import importlib
import sys
import types

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pixelpong.api.evaluation import evaluate as evaluate
    from pixelpong.api.policy import Policy as Policy
    from pixelpong.api.training import resume as resume
    from pixelpong.api.training import train as train
    from pixelpong.config import Config as Config
    from pixelpong.env.gym import make_env as make_env
    from pixelpong.errors import PixelpongError as PixelpongError
    from pixelpong.evaluate import Evaluation as Evaluation
    from pixelpong.presets import load_preset as load_preset
    from pixelpong.presets import preset_names as preset_names
    from pixelpong.report.notebook import Run as Run

_HOMES = {
    "train": "api.training",
    "resume": "api.training",
    "evaluate": "api.evaluation",
    "Run": "report.notebook",
    "Policy": "api.policy",
    "Evaluation": "evaluate",
    "make_env": "env.gym",
    "Config": "config",
    "load_preset": "presets",
    "preset_names": "presets",
    "PixelpongError": "errors",
}
"""Where each public name is made."""

__all__ = [
    "Config",
    "Evaluation",
    "PixelpongError",
    "Policy",
    "Run",
    "evaluate",
    "load_preset",
    "make_env",
    "preset_names",
    "resume",
    "train",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for, and keep it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


class _Package(types.ModuleType):
    """This package, whose public names are never taken by its submodules.

    Python sets a package's attribute to a submodule when that is first imported, and here two
    have the names of functions: ``train.py`` and ``evaluate.py``. ``pixelpong.train`` is the
    function at any time, and ``from pixelpong.train import ...`` reaches into the file.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """By its name, as cloudpickle takes a module: functions that use it travel to workers."""
        return importlib.import_module, (self.__name__,)


class _WhenGymnasiumComes:
    """Registers our environment once Gymnasium is imported, be it before this package or after.

    Importing it here would let everybody wait for it, each worker as well. Python asks a finder
    for every module that it imports; this one knows a single module, and takes it from the others.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Where Gymnasium is, with a loader that registers in the end; None for all else."""
        if name != "gymnasium":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: types.ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                _register(module)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def _register(gymnasium: Any) -> None:
    gymnasium.register("pixelpong/Pong-v0", "pixelpong.env.gym:PongEnv")


sys.modules[__name__].__class__ = _Package
if "gymnasium" in sys.modules:
    _register(sys.modules["gymnasium"])
else:
    sys.meta_path.insert(0, _WhenGymnasiumComes())
