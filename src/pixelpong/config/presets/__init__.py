"""Named sets of options, TOML files beside this one, and the layers over them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pixelpong.config import BUDGET, DEFAULT_PRESET, Config
from pixelpong.config.options import COMMAND_LINE
from pixelpong.errors import ConfigError, expected

FILE_LIMIT = 1 << 16
"""Bytes of the longest file of options that is read; all options take a thousand or two."""


def preset_names() -> list[str]:
    """The presets that come with the package."""
    files = resources.files("pixelpong.config.presets")
    names = (file.name for file in files.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_preset(name: str) -> Config:
    """The configuration of a preset.

    Raises:
        ConfigError: there is no preset of that name.

    >>> load_preset("ray").reinforce.batch_size
    4
    """
    if name not in preset_names():
        known = ", ".join(preset_names())
        raise ConfigError(expected("the name of a preset", repr(name), f"use one of {known}"))
    text = resources.files("pixelpong.config.presets").joinpath(f"{name}.toml").read_text("utf-8")
    return Config().updated(tomllib.loads(text) | {"preset": name}, f"preset {name}")


def read_toml(path: Path) -> dict[str, Any]:
    """The options in a TOML file, flat, names and values not yet checked.

    Raises:
        ConfigError: the file cannot be read or is not TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
        if len(content) > FILE_LIMIT:
            raise ValueError(f"more than {FILE_LIMIT} bytes")
        return tomllib.loads(content.decode())
    except OSError as error:
        got = error.strerror or str(error)
        raise ConfigError(
            expected(f"a TOML file at {path}", got, "check the path given to --config")
        ) from error
    except (ValueError, RecursionError) as error:  # also no UTF-8, or nested without end
        raise ConfigError(
            expected(f"TOML in {path}", str(error), "write lines like `batch_size = 10`")
        ) from error


def resolve_config(preset: str | None, file: Path | None, given: Mapping[str, Any]) -> Config:
    """The configuration of preset, then file, then command line, each over the one before.

    Args:
        preset: its name; where not given, the one that the file names, or the default.
        file: a TOML file, or None.
        given: the options on the command line, flat.

    Raises:
        ConfigError: an unknown preset or key, or a value out of range.
    """
    content = read_toml(file) if file else {}
    name = preset or content.get("preset", DEFAULT_PRESET)
    config = load_preset(name).updated(content | {"preset": name}, str(file))
    # A budget on the command line replaces the preset's, and is added to the file's.
    kept = {option: content[option] for option in BUDGET if option in content}
    return config.updated(kept | dict(given), COMMAND_LINE)
