"""The health of a training run, in plain words with advice.

Each check looks for one common failure of policy gradients. It says what it found, what this means
and what to do. If nothing is wrong, a single finding says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.config import ALGORITHMS
from pixelpong.config.protocols import PONG
from pixelpong.errors import number_of
from pixelpong.run.record import Record
from pixelpong.run.words import compare, in_game, signed

GOOD, NOTE, WARNING = "good", "note", "warning"

WINDOW = 10  # number of updates to average over, because a single one is noisy
MIN_UPDATES = 5  # with fewer updates, the network has not learned anything yet

ENTROPY_GONE = 0.05
"""A share of the largest possible entropy. At 5 %, about 99 of 100 decisions are certain, so the
agent tries nothing new. Ten of our runs in the fast mode stayed at 23 % or more to the end."""

STRONG_RETURN = 15.0  # above this return, a policy has reason to be certain

ONE_ACTION = 0.97
"""A share of a single action. A paddle that nearly always moves one way is stuck at the edge. In
ten runs in the fast mode, the share of UP was between 0.24 and 0.38."""

KL_LARGE = 0.08
"""Mean KL divergence between the policy before and after an update, in nats. Nine of ten runs kept
it at 0.068 or below; the one that reached 0.145 learned badly."""

STALLED_STEPS = 1_000_000  # steps without progress; the fast mode learns all of Pong in fewer
STALLED_GAIN = 0.5  # increase of the return that counts as progress
LONGER, LOWER = 1.03, 0.99
"""Ratios from one million steps to the next. In the classic mode, rallies grow longer and the
entropy falls before the return rises: in a run of ``docs/log.md`` by some 8 % and 1.5 % from the
first million to the second, while the return rose by 0.4."""


@dataclass(frozen=True)
class Finding:
    """The result of a check; `text` and `advice` may be empty."""

    level: str  # `GOOD`, `NOTE` or `WARNING`
    title: str
    text: str
    advice: str = ""


def assess(record: Record) -> list[Finding]:
    """List the findings about a run, warnings first; a damaged run has none.

    What is known of Pong alone is not checked in other games.
    """
    if record.config is None:
        return []
    if len(record.rows) < MIN_UPDATES:
        finished = number_of(record.update, "update")
        text = f"It has finished {finished}; checks begin after {MIN_UPDATES}."
        return [Finding(NOTE, "Too early to tell", text)]
    results = _check_pong(record) if record.game == PONG else _check_other(record)
    findings = [finding for finding in results if finding is not None]
    if not findings:
        findings.append(Finding(GOOD, "No problems found", _describe_strength(record)))
    return findings


def _check_pong(record: Record) -> list[Finding | None]:
    assert record.config is not None
    steps, returns = _find_returns(record)
    strength = returns[-1] if len(returns) else math.nan
    num_actions = ALGORITHMS[record.config.algorithm].num_actions
    return [
        _check_entropy(_mean(record, "entropy") / math.log(num_actions), strength),
        _check_actions(_mean(record, "up_share")),
        _check_update_size(_mean(record, "kl")),
        _check_progress(record, steps, returns.astype(np.float64), strength),
    ]


def _check_other(record: Record) -> list[Finding | None]:
    largest = math.log(len(cartridge(record.game).actions))
    return [
        _check_entropy(_mean(record, "entropy") / largest, math.nan),
        _check_update_size(_mean(record, "kl")),
    ]


def _find_returns(record: Record) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the steps and the returns, estimated ones if there are any."""
    steps, returns = record.curve()
    return (steps, returns) if len(returns) else record.curve("mean_return_100")


def _describe_strength(record: Record) -> str:
    """Say how well a run plays; "" if that is not known."""
    _, returns = _find_returns(record)
    if not len(returns):
        return ""
    if record.game == PONG:
        return f"It plays at a return of about {signed(returns[-1])}."
    words = compare(returns[-1], record.game)
    score = f"Its mean score of the last 100 games is {in_game(returns[-1], record.game)}"
    return f"{score}, {words}." if words else f"{score}."


def _mean(record: Record, name: str) -> float:
    """Average a metric's last values; without any, return NaN, which passes every check."""
    _, values = record.curve(name)
    return float(np.mean(values[-WINDOW:])) if len(values) else math.nan


def _check_entropy(share: float, strength: float) -> Finding | None:
    if not share < ENTROPY_GONE or strength >= STRONG_RETURN:
        return None
    text = (
        f"The policy's entropy is {100 * share:.0f} % of the maximum. It no longer tries anything "
        "new, so it cannot learn anything new."
    )
    advice = "Start a new run with a lower --learning-rate or, with PPO, a higher --ent-coef."
    return Finding(WARNING, "Entropy gone", text, advice)


def _check_actions(up_share: float) -> Finding | None:
    if not (up_share >= ONE_ACTION or up_share <= 1 - ONE_ACTION):
        return None
    text = f"The paddle goes up in {100 * up_share:.0f} % of the steps: it is stuck at one edge."
    advice = (
        "Wait a few updates. If it stays there, start a new run with another --seed or a lower "
        "--learning-rate."
    )
    return Finding(WARNING, "One action only", text, advice)


def _check_update_size(kl: float) -> Finding | None:
    if not kl > KL_LARGE:
        return None
    text = f"Each update changes the policy by a KL divergence of {kl:.3f}; {KL_LARGE} is a lot."
    return Finding(WARNING, "Steps too large", text, "Lower --learning-rate or --update-epochs.")


def _check_progress(
    record: Record, steps: NDArray[Any], returns: NDArray[np.float64], strength: float
) -> Finding | None:
    is_late = steps > steps.max(initial=0) - STALLED_STEPS
    best_before = returns[~is_late].max(initial=-math.inf)
    best_since = returns[is_late].max(initial=-math.inf)
    if not (strength < STRONG_RETURN and best_since < best_before + STALLED_GAIN):
        return None
    text = (
        f"The return has improved by less than half a point in {STALLED_STEPS:,} steps: its best "
        f"was {signed(best_before)} before and {signed(best_since)} since."
    )
    if record.config is not None and record.config.algorithm == "reinforce":
        is_longer = _change(record, "steps_per_point") > LONGER
        if is_longer or _change(record, "entropy") < LOWER:
            return None
        text += " Nor have rallies grown longer or the entropy lower, which would come first."
    return Finding(NOTE, "No progress", text, "Try another --seed or --learning-rate.")


def _change(record: Record, name: str) -> float:
    """Divide a metric's mean in the last `STALLED_STEPS` by its mean in those before.

    If the metric is missing, return NaN, which is neither above nor below a limit.
    """
    steps, values = record.curve(name)
    age = steps.max(initial=0) - steps
    late = values[age < STALLED_STEPS]
    before = values[(age >= STALLED_STEPS) & (age < 2 * STALLED_STEPS)]
    return float(np.mean(late) / np.mean(before)) if len(late) and len(before) else math.nan
