"""Calls that mypy refuses: `make test` fails where one of these comments is not needed."""

from typing import TYPE_CHECKING

import pixelpong

if TYPE_CHECKING:
    pixelpong.train("fast", updatez=3)  # type: ignore[call-arg]
    pixelpong.train("fast", updates="3")  # type: ignore[arg-type]
    pixelpong.make_env(observation="rgb")  # type: ignore[arg-type]
