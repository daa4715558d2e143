"""The functions that make environments: what each sets itself, and how its errors name options."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pixelpong.atari.envs.errors import EnvError
from pixelpong.errors import did_you_mean, list_words, unknown


@dataclass(frozen=True)
class Maker:
    """A function with options of `pixelpong.make_vec`, for which it makes a `VectorEnv`."""

    name: str  # as users call it
    # The options that it sets, with their values. It refuses them from its caller.
    own: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()  # the options that it has besides those of `make_vec`
    draws_frames: bool = False  # whether it draws a range of frames with ale-py's coins
    # What a caller has written, or would write, for an option of `make_vec`, if it is another word.
    words: Mapping[str, str] = field(default_factory=dict)

    def spelling(self, words: Mapping[str, str]) -> Maker:
        """Return the same function with the words that its caller has used."""
        return dataclasses.replace(self, words={**self.words, **words})

    def spell(self, name: str) -> str:
        """Return the caller's word for an option."""
        return self.words.get(name, name)

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Add its own options to those of a caller."""
        for name in given:
            if name in self.own:
                raise EnvError(f"{self.name} itself sets {name}. Leave it out.")
        return {**given, **self.own}

    def leave_out(self, *names: str) -> str:
        """Advise to leave out one of these options, except those that the function itself sets."""
        given = [self.spell(name) for name in names if name not in self.own]
        return f"leave out {list_words(given, 'or')}"

    def unknown_option(self, name: str, known: Iterable[str]) -> EnvError:
        """Make the error for an option that does not exist."""
        names = [*self.others, *(each for each in known if each not in self.own)]
        advice = _MISSING.get(name) or did_you_mean(name, names, f"see help(pixelpong.{self.name})")
        return EnvError(f"{self.name}: {unknown('option', name, advice)}")


_MISSING = {"sound_obs": "there is no sound"}  # options of ale-py alone

MAKE_VEC = Maker("make_vec")
