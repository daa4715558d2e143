"""The settings of ale-py's `ALEInterface`: they can be read, and say where they are set here."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.atari.envs.errors import EnvError, EnvValueError
from pixelpong.atari.machine.cartridge import CONTROLS, PADDLE, Cartridge, Flavour
from pixelpong.atari.machine.cartridges import facts
from pixelpong.atari.machine.record import PADDLE_HIGHEST
from pixelpong.atari.machine.roms import rom_path
from pixelpong.errors import did_you_mean, must_be, unknown

Value = bool | int | float | str

# ALE's settings that nothing here changes, as text.
_FIXED = {
    "palette": "standard", "sound": "false", "fragsize": "64", "freq": "31400",
    "tiafreq": "31400", "volume": "100", "clipvol": "true", "cpu": "low",
    "system_random_seed": "4753849", "max_num_frames": "0", "paddle_min": "-1",
    "run_length_encoding": "1", "restricted_action_set": "0", "color_averaging": "0",
    "send_rgb": "0", "frame_skip": "1", "truncate_on_loss_of_life": "0",
    "reward_min": str(-(2**31)), "reward_max": str(2**31 - 1), "record_screen_dir": "",
    "record_sound_filename": "", "display_screen": "0", "sound_obs": "0",
}  # fmt: skip
_NO_SOUND = "There is no sound"
# For settings that are set elsewhere, or that there are not: what to do.
_ADVICE = {
    "repeat_action_probability": "give repeat_action_probability to make_env",
    "max_num_frames_per_episode": "give max_num_frames_per_episode to make_env",
    "random_seed": "give seed to reset",
    "frame_skip": "give frameskip to make_env",
    "display_screen": "show what render() returns with render_mode='rgb_array'",
    "rom_file": "give game to make_env",
}


class Settings:
    """What an `Ale` answers about its settings."""

    _envs: Any
    _facts: Cartridge

    def getInt(self, key: str) -> int:
        """The value of a setting as a whole number.

        Raises:
            EnvError: there is no such setting.
        """
        text = self._read(key)
        try:
            return int(float(text))
        except ValueError:
            return 0  # as C's atoi

    def getFloat(self, key: str) -> float:
        """The value of a setting as a number, in single precision."""
        try:
            return float(np.float32(self._read(key)))
        except ValueError:
            return 0.0

    def getBool(self, key: str) -> bool:
        """Whether a setting is on."""
        return self._read(key) in ("1", "true")

    def getString(self, key: str) -> str:
        """The value of a setting as text."""
        return self._read(key)

    def setInt(self, key: str, value: int) -> None:
        """Refuse another value than the setting has, and say where it is set."""
        self._refuse(key, value, self.getInt(key))

    def setFloat(self, key: str, value: float) -> None:
        """Refuse another value, as `setInt`."""
        self._refuse(key, float(np.float32(value)), self.getFloat(key))

    def setBool(self, key: str, value: bool) -> None:
        """Refuse another value, as `setInt`."""
        self._refuse(key, value, self.getBool(key))

    def setString(self, key: str, value: str) -> None:
        """Refuse another value, as `setInt`."""
        self._refuse(key, value, self.getString(key))

    def getAvailableModes(self) -> list[int]:
        """The games on the cartridge that `make_env` can play."""
        return list(self._facts.modes)

    def getAvailableDifficulties(self) -> list[int]:
        """The difficulties that change something and that `make_env` can play."""
        return list(self._facts.difficulties)

    def setMode(self, mode: int) -> None:
        """Refuse another game on the cartridge than is played."""
        self._refuse_flavour("mode", mode, self._facts.modes, self._flavour.mode)

    def setDifficulty(self, difficulty: int) -> None:
        """Refuse another difficulty than is played."""
        known, current = self._facts.difficulties, self._flavour.difficulty
        self._refuse_flavour("difficulty", difficulty, known, current)

    def loadROM(self, path: Any) -> None:
        """Refuse: an environment has one game."""
        raise EnvError("An environment has one game: make another one, with game in make_env.")

    @staticmethod
    def isSupportedROM(path: Any) -> str | None:
        """Return the game whose ROM a file has, or None.

        Raises:
            EnvError: the file cannot be read.
        """
        file = Path(path)
        if not file.is_file():  # reading a named pipe would wait
            raise EnvError(f"{path} is not a file; give the file of a ROM.")
        try:
            checksum = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            advice = "give the file of a ROM"
            raise EnvError(f"{path} cannot be read ({error.strerror}); {advice}.") from error
        return {line["sha256"]: game for game, line in facts().items()}.get(checksum)

    def setLoggerMode(self, mode: Any) -> None:
        """Do nothing: there is no log."""

    def saveScreenPNG(self, path: Any) -> None:
        """Refuse: a library for pictures can save what `getScreenRGB` returns."""
        raise EnvError("No pictures are saved here: give getScreenRGB() to a library for pictures.")

    def getAudio(self, buffer: Any = None) -> Any:
        """Refuse: there is no sound."""
        raise EnvError(f"{_NO_SOUND}; leave out getAudio.")

    def getAudioSize(self) -> int:
        """Refuse: there is no sound."""
        raise EnvError(f"{_NO_SOUND}; leave out getAudioSize.")

    @property
    def _flavour(self) -> Flavour:
        flavour: Flavour = self._envs._options.all_flavours[0]
        return flavour

    @property
    def _has_paddles(self) -> bool:
        return CONTROLS[self._facts.controls].kind == PADDLE

    def _read(self, key: str) -> str:
        """Return a setting as ALE's text."""
        options, seed = self._envs._options, int(self._envs.games["seed"][0])
        if options.coins == "ale_env":  # ALE keeps 32 bits, with a sign
            seed = int(np.array(seed).astype(np.int32))
        highest = self._facts.highest_ohm
        values = _FIXED | {
            "repeat_action_probability": f"{options.repeat_action_probability:g}",
            "max_num_frames_per_episode": str(options.max_num_frames_per_episode),
            "random_seed": str(seed if self._envs._is_seeded else -1),
            "paddle_max": str(-1 if highest == PADDLE_HIGHEST else highest),
            "rom_file": str(rom_path(self._facts.name)),
        }
        if key not in values:
            advice = did_you_mean(key, values, "see ale-py's manual")
            raise EnvError(unknown("setting", key, advice))
        return values[key]

    def _refuse(self, key: str, value: Value, current: Value) -> None:
        if value == current:
            return
        if key in ("sound", "sound_obs", "record_sound_filename"):
            raise EnvError(f"{_NO_SOUND}; leave out {key}.")
        advice = _ADVICE.get(key, "leave it out")
        raise EnvError(f"{key} stays {current!r} in an environment; {advice}.")

    def _refuse_flavour(self, name: str, value: int, known: tuple[int, ...], current: int) -> None:
        if value not in known:
            raise EnvValueError(must_be(name, f"one of {list(known)}", value))
        if value != current:
            raise EnvError(f"{name} stays {current} in an environment; give {name} to make_env.")
