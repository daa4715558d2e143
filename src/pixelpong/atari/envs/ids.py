"""Names that ale-py and Gymnasium gave to environments over the years, as options of ours."""

from __future__ import annotations

import re
from typing import Any

from pixelpong.atari.envs.errors import EnvError
from pixelpong.atari.machine.cartridges import facts, id_of
from pixelpong.errors import did_you_mean, unknown
from pixelpong.schema import MAX_FRAMES

_FORM = re.compile(r"(ALE/)?(\w+?)(-ram)?(Deterministic|NoFrameskip)?-v([045])", re.ASCII)
_STICKY = {"0": 0.25, "4": 0.0, "5": 0.25}  # by version


def ale_options(env_id: str) -> dict[str, Any]:
    """Return the options of `pixelpong.make_env` for one of ale-py's ids, old or new.

    For the same seed and actions, ``pixelpong.make_env(**ale_options(env_id))`` returns the bytes
    of ``gymnasium.make(env_id)``. `v0` has sticky frames, `v4` none. Both have 2 to 4 frames per
    step, drawn at random; with ``NoFrameskip`` 1. ale-py 0.12 has no ids with ``Deterministic`` or
    ``-ram`` any more. Here they have 4 frames, in Space Invaders 3, and the memory as observation;
    the rest is as in the others. All games have all ids.

    Raises:
        EnvError: it is not such an id.

    >>> ale_options("Breakout-v4")["frameskip"], ale_options("ALE/Alien-v5")["frameskip"]
    ((2, 5), 4)
    """
    match = _FORM.fullmatch(env_id) if isinstance(env_id, str) else None
    games = {id_of(game, "ALE", 5)[4:-3]: game for game in facts()}
    if match is None or (match[1] is not None) != (match[5] == "5"):
        raise EnvError(unknown("id", env_id, "an id is like 'Breakout-v4' or 'ALE/Breakout-v5'"))
    _, title, ram, kind, version = match.groups()
    if title not in games:
        advice = did_you_mean(title, games, "see pixelpong.games()")
        raise EnvError(f"{env_id}: {unknown('game', title, advice)}")
    if kind and version == "5":
        raise EnvError(f"{env_id}: v5 has no {kind}; leave it out.")
    game, frameskip = games[title], (2, 5) if version != "5" else 4
    if kind:
        frameskip = 1 if kind == "NoFrameskip" else 3 if game == "space_invaders" else 4
    return {
        "game": game,
        "obs_type": "ram" if ram else "rgb",
        "frameskip": frameskip,
        "repeat_action_probability": _STICKY[version],
        "max_num_frames_per_episode": MAX_FRAMES,
        "coins": "ale",
    }
