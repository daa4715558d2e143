"""What needs a library that not everybody has installed."""

from __future__ import annotations

import importlib.util

from pixelpong.errors import ConfigError


def require(what: str, *libraries: str, extra: str) -> None:
    """Refuse what needs a library that is not installed; the error names the extra with it."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise ConfigError(f"{what} {library}: pip install 'pixelpong[{extra}]'")
