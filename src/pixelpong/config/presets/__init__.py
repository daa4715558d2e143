"""Presets: named sets of options, in TOML files. The user's file and flags override them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pixelpong.config import BUDGET, OPTIONS, Config, require_used
from pixelpong.errors import ConfigError, refusing

FILE_LIMIT = 1 << 16  # bytes of a file of options; all options take a thousand or two


def preset_names() -> list[str]:
    """The names of the package's presets."""
    return list(OPTIONS["preset"].choices)


def load_preset(name: str) -> Config:
    """The configuration of a preset.

    Raises:
        ConfigError: no preset has this name.

    >>> load_preset("ray").batch_size
    4
    """
    OPTIONS["preset"].check(name, "preset")
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text("utf-8")
    return Config().updated(tomllib.loads(text) | {"preset": name}, f"preset {name}")


def read_toml(path: Path) -> dict[str, Any]:
    """The options in a TOML file, flat; names and values are not checked."""
    advice = "check its name, and write lines like `batch_size = 10`"
    with refusing(f"a TOML file at {path}", advice, ConfigError), path.open("rb") as file:
        content = file.read(FILE_LIMIT + 1)
        if len(content) > FILE_LIMIT:
            raise ValueError(f"more than {FILE_LIMIT} bytes")
        return tomllib.loads(content.decode())


def combine(
    preset: str | Config | None,
    content: Mapping[str, Any],
    given: Mapping[str, Any],
    origins: tuple[str, str],
) -> Config:
    """Make the configuration from preset, file and what is given; later ones override earlier ones.

    The preset is the first one, or the file's, or else the default. Neither the file's `content`
    nor the `given` options are checked yet; `origins` are those of both.
    """
    if not isinstance(preset, Config):
        preset = load_preset(preset or content.get("preset", Config.preset))
    config = preset.updated({**content, "preset": preset.preset}, origins[0])
    # A given budget replaces the preset's, and is added to the file's.
    kept = {option: content[option] for option in BUDGET if option in content}
    config = config.updated(kept | dict(given), origins[1])
    for names, origin in zip((content, given), origins, strict=True):
        require_used(names, config, origin)
    return config
