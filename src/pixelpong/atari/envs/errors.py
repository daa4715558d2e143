"""The errors of environments: those that Gymnasium's users catch, with our plain sentences."""

from __future__ import annotations

import gymnasium

from pixelpong.errors import ConfigError


class EnvError(ConfigError, gymnasium.error.Error):
    """An option, an action, a seed or a state that an environment cannot use."""


class EnvTypeError(EnvError, TypeError):
    """Something of the wrong type."""


class EnvValueError(EnvError, ValueError):
    """Something of the wrong size, or out of range."""


class EnvIndexError(EnvError, IndexError):
    """The number of a game or an action that does not exist."""


class EnvOrderError(EnvError, RuntimeError):
    """A call that must not come yet."""


class EnvAttributeError(EnvError, AttributeError):
    """An attribute that an environment does not have."""
