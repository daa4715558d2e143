"""Presets: named sets of options, in TOML files. The user's file and flags override them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from pixelpong.config import OPTIONS, Config, require_used
from pixelpong.config.protocols import PONG
from pixelpong.errors import ConfigError, refusing

FILE_LIMIT = 1 << 16  # size limit of a file in bytes; all options together take about 2,000


def preset_names() -> list[str]:
    """Return the names of the package's presets."""
    return list(OPTIONS["preset"].choices)


def load_preset(name: str) -> Config:
    """Load the configuration of a preset.

    Raises:
        ConfigError: no preset has this name.

    >>> load_preset("ray").batch_size
    4
    """
    OPTIONS["preset"].check(name, "preset")
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text("utf-8")
    return Config().updated(tomllib.loads(text) | {"preset": name}, f"preset {name}")


def read_toml(path: Path) -> dict[str, Any]:
    """Read the options in a TOML file into a flat dict; names and values are not checked."""
    with refusing(f"cannot read {path}", ConfigError, "check its name"), path.open("rb") as file:
        content = file.read(FILE_LIMIT + 1)
    advice = "a TOML file has lines like `batch_size = 10`"
    with refusing(f"cannot read {path}", ConfigError, advice):
        if len(content) > FILE_LIMIT:
            raise ValueError(f"it has more than {FILE_LIMIT:,} bytes")
        return tomllib.loads(content.decode())


def combine(
    preset: str | Config | None,
    content: Mapping[str, Any],
    given: Mapping[str, Any],
    origins: tuple[str, str],
) -> Config:
    """Combine a preset, a file and given options; later ones override earlier ones.

    Without a `preset`, the file's preset is used, or else the default. The file's `content` and the
    `given` options are not checked yet; `origins` names the two in errors.
    """
    game = given.get("game", content.get("game", PONG))
    if not isinstance(preset, Config):
        by_game = Config.preset if game == PONG else "atari"
        preset = load_preset(preset or content.get("preset", by_game))
    config = preset.updated({**content, "preset": preset.preset}, origins[0])
    config = config.updated(given, origins[1])
    for names, origin in zip((content, given), origins, strict=True):
        require_used(names, config, origin)
    require_fit(config)
    chosen = {**content, **given}
    if not config.is_pong and "total_timesteps" in chosen and "anneal_steps" not in chosen:
        config = replace(config, anneal_steps=config.total_timesteps or 0)
    return config


def require_fit(config: Config) -> None:
    """Refuse a preset that is not for the game."""
    if config.is_pong and config.preset == "atari":
        raise ConfigError("The preset atari is for games other than Pong; choose a --game.")
    if not config.is_pong and config.preset != "atari":
        what = f"The preset {config.preset} is for Pong, and the game is {config.game}."
        raise ConfigError(f"{what} Use --preset atari, or leave it out.")
