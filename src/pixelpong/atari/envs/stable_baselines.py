"""A `VecEnv` of many games; stable-baselines3 does not accept Gymnasium vector environments.

envs = pixelpong.make_sb3(8, actions="three")
PPO("CnnPolicy", envs).learn(1_000_000)

A step of all games is one call, where ``DummyVecEnv`` of `pixelpong.make_env` makes one for each.
The infos are those of an environment in a ``Monitor``: ``episode`` holds the return and the length
of a whole game, before reward clipping and regardless of lost lives, and the seconds since the
environment was made. Return and length come from the games' own record. The length ``l`` counts
steps; in ``make_atari_env("BreakoutNoFrameskip-v4")`` it counts frames, four times as many.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.envs.errors import EnvAttributeError
from pixelpong.atari.envs.maker import Maker
from pixelpong.atari.envs.options import check_option
from pixelpong.atari.envs.pending import Part, Step, join
from pixelpong.atari.envs.plug import ObservationName
from pixelpong.atari.envs.vector import VectorEnv
from pixelpong.atari.machine.cartridges import id_of
from pixelpong.atari.steps.stepping import EPISODE_RETURN, EPISODE_STEPS, IS_LOST
from pixelpong.errors import ConfigError, unknown
from pixelpong.machine import require
from pixelpong.schema import Number

VecEnv: Any = object
Monitor: Any = object
ResultsWriter: Any = object
_reason: Exception | None = None  # why it cannot be imported
try:
    from stable_baselines3.common import monitor, vec_env

    VecEnv, Monitor = vec_env.VecEnv, monitor.Monitor
    ResultsWriter = monitor.ResultsWriter
except Exception as error:  # make_sb3 says what to do; a broken PyTorch raises anything
    _reason = error


# stable-baselines3 keeps the observations of the last step until after the next one.
MAKE_SB3 = Maker(
    "make_sb3",
    {"autoreset_mode": "SameStep", "reward_clipping": False, "batch_size": 0, "copy": True},
)


class StepsWithEpisodes(VectorEnv[Any, Any]):
    """The same games; their infos also have what stable-baselines3 asks of an episode."""

    def _collect(self, parts: tuple[Part, ...]) -> Step:
        """Add the episodes' returns and lengths, and which games lost a life, to the infos."""
        step = super()._collect(parts)
        _, _, numbers, ends, _ = join(parts)
        own = {"r": numbers[EPISODE_RETURN], "l": numbers[EPISODE_STEPS], "is_lost": ends[IS_LOST]}
        step[-1].update(own)
        return step


class StableBaselinesEnv(Generic[ObservationName], VecEnv):
    """The games of `pixelpong.make_vec`, with its options, for stable-baselines3.

    With `life_loss_info`, as in its ``AtariWrapper``, a lost life is an end for the agent while the
    game goes on. With `monitor_dir`, a new or empty directory, it gets the files that
    `make_vec_env` writes, one for each game, which ``load_results`` and ``plot_results`` read.

    Raises:
        ConfigError: stable-baselines3 is not installed, `monitor_dir` has such files or cannot be
            written, or as in `pixelpong.make_vec`.
    """

    vector_env: ClassVar[type[StepsWithEpisodes]] = StepsWithEpisodes

    def __init__(
        self,
        num_envs: Number = 1,
        observation: ObservationName = "atari",  # type: ignore[assignment]
        *,
        reward_clipping: bool = True,
        life_loss_info: bool = False,
        monitor_dir: str | Path | None = None,
        **options: Any,
    ) -> None:
        require("make_sb3 needs", "stable_baselines3", extra="peers")
        if _reason is not None:
            what = f"make_sb3 needs stable_baselines3, which cannot be imported here: {_reason}"
            raise ConfigError(f"{what}; repair it, or use make_vec.") from _reason
        self._clips = check_option("reward_clipping", bool, reward_clipping, MAKE_SB3)
        self._ends_lives = check_option("life_loss_info", bool, life_loss_info, MAKE_SB3)
        options = MAKE_SB3.complete(options)
        self._games = games = self.vector_env(num_envs, observation, _maker=MAKE_SB3, **options)
        self._start = time.time()
        self._files = [] if monitor_dir is None else _open_files(monitor_dir, games.game_names)
        super().__init__(games.num_envs, games.single_observation_space, games.single_action_space)

    def reset(self) -> NDArray[Any]:
        """Start an episode in all games, from the seeds that `seed` set, if it was called."""
        if any(self._options):
            raise ConfigError("make_sb3: reset() has no options. Leave out set_options().")
        # The seeds of the last reset are kept with the games: an interrupt may have come before
        # `_reset_seeds`.
        is_new = self._seeds is not self._games._pending.kept and None not in self._seeds
        seeds = self._seeds if is_new else None
        observations, infos = self._games._reset(seeds, None, self._seeds)
        self.reset_infos = self._name_infos(infos)
        self._reset_seeds()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
        """Play a step of each game; return observations, rewards, whether each ended, infos."""
        observations, rewards, is_over, is_cut, infos = self._games.step(self._actions)
        is_over_or_cut, final = is_over | is_cut, infos.get("final_obs", observations)
        is_done = is_over_or_cut | (infos["is_lost"] if self._ends_lives else False)
        listed = self._name_infos(infos)
        for i in np.flatnonzero(is_done).tolist():
            ended = final[i] if is_over_or_cut[i] else observations[i]
            is_truncated = bool(is_cut[i] and not is_over[i])
            listed[i] |= {"terminal_observation": ended, "TimeLimit.truncated": is_truncated}
        for i in np.flatnonzero(is_over_or_cut).tolist():
            told = {"r": float(infos["r"][i]), "l": int(infos["l"][i])}
            listed[i]["episode"] = episode = told | {"t": time.time() - self._start}
            for file in self._files[i : i + 1]:
                file.write_row(episode | {"t": round(episode["t"], 6)})
        rewards = np.clip(rewards, -1, 1) if self._clips else rewards
        return observations, rewards.astype(np.float32), is_done, listed

    def _name_infos(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the info of each game, as Atari environments have it."""
        names = ("lives", "frame_number", "episode_frame_number")
        values = zip(*(infos[name].tolist() for name in names), strict=True)
        listed: list[dict[str, Any]] = [dict(zip(names, each, strict=True)) for each in values]
        for info, ram in zip(listed, infos.get("ram", ()), strict=False):
            info["ram"] = ram
        return listed

    def close(self) -> None:
        """End the threads, and close the files."""
        self._games.close()
        for file in self._files:
            file.close()

    def get_images(self) -> list[NDArray[np.uint8]]:
        """Return the newest frames, if ``render_mode`` is ``"rgb_array"``."""
        return list(self._games.render() or ())

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the environment of all games, once for each of `indices`."""
        if not hasattr(self._games, attr_name):
            advice = "see dir(pixelpong.make_vec)"
            raise EnvAttributeError(f"make_sb3: {unknown('attribute', attr_name, advice)}")
        return [getattr(self._games, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse, because the games share their attributes."""
        raise ConfigError(f"The games cannot set {attr_name} one by one; give options to make_sb3.")

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Call ``clone_state`` or ``restore_state`` of the games `indices`, each for itself.

        A state is that of one game, and each of the games may continue from it.
        """
        which = list(self._get_indices(indices))
        if method_name == "clone_state":
            state = self._games.clone_state(*args, **kwargs)
            return [tuple(array[[i]] for array in state) for i in which]
        if method_name == "restore_state":
            (state,) = args
            repeated = tuple(np.repeat(array, len(which), axis=0) for array in state)
            self._games.restore_state(repeated, which, **kwargs)
            return [None] * len(which)
        what = f"The games cannot call {method_name} one by one, only clone_state and restore_state"
        raise ConfigError(f"{what}; use make_vec for that.")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Whether the infos are those of this wrapper; those of `Monitor` are."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]


def _open_files(directory: str | Path, games: tuple[str, ...]) -> list[Any]:
    """Open a file for each game's episodes, as `make_vec_env` names them."""
    try:
        folder = Path(os.fspath(directory))
        if any(folder.glob("*monitor.csv")):
            what = f"monitor_dir {str(folder)!r} already has the episodes of another training"
            raise ConfigError(f"make_sb3: {what}; give a new directory.")
        header = {"t_start": time.time()}
        return [
            ResultsWriter(str(folder / str(i)), header | {"env_id": id_of(game)})
            for i, game in enumerate(games)
        ]
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(
            f"make_sb3: monitor_dir {directory!r} cannot be written: {error}; give a directory."
        ) from error
