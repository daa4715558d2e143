"""The health of a training, in plain words with advice.

Each check looks for one common failure of policy gradients, and says what it found, what that means
and what to do. If nothing is wrong, one finding says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pixelpong.config import ALGORITHMS
from pixelpong.errors import number_of
from pixelpong.run.record import Record
from pixelpong.run.words import signed

GOOD, NOTE, WARNING = "good", "note", "warning"

WINDOW = 10  # updates to average over: a single one is noise
MIN_UPDATES = 5  # with fewer, the network has learned nothing yet

ENTROPY_GONE = 0.05
"""Share of the largest possible entropy. At 5 %, about 99 of 100 decisions are certain, so nothing
new is tried. Ten of our trainings in the fast mode kept 23 % or more to their end."""

STRONG_RETURN = 15.0  # from here, a policy may well be certain

ONE_ACTION = 0.97
"""Share of a single action. A paddle that nearly always goes one way is stuck at the edge. In ten
trainings in the fast mode the share of UP was between 0.24 and 0.38."""

KL_LARGE = 0.08
"""Mean KL divergence between the policy before and after an update, in nats. Nine of ten trainings
stayed at 0.068 or below; the one that reached 0.145 learned badly."""

STALLED_STEPS = 1_000_000  # without progress; the fast mode learns all of Pong in fewer
STALLED_GAIN = 0.5  # of return, that counts as progress


@dataclass(frozen=True)
class Finding:
    """What a check has found; `text` and `advice` may be empty."""

    level: str  # `GOOD`, `NOTE` or `WARNING`
    title: str
    text: str
    advice: str = ""


def assess(record: Record) -> list[Finding]:
    """The findings about a run, warnings first; none about a damaged one."""
    if record.config is None:
        return []
    if len(record.rows) < MIN_UPDATES:
        text = f"It has finished {number_of(record.update, 'update')}; checks begin after "
        return [Finding(NOTE, "Too early to tell", f"{text}{MIN_UPDATES}.")]
    num_actions = ALGORITHMS[record.config.algorithm].num_actions
    entropy = _mean(record, "entropy") / math.log(num_actions)
    up, kl = _mean(record, "up_share"), _mean(record, "kl")
    steps, returns = record.curve()
    if not len(returns):
        steps, returns = record.curve("mean_return_100")
    strength = returns[-1] if len(returns) else math.nan
    is_late = steps > steps.max(initial=0) - STALLED_STEPS
    floats = returns.astype(np.float64)  # whole numbers have no infinity
    before, since = (floats[each].max(initial=-math.inf) for each in (~is_late, is_late))

    found = []
    if entropy < ENTROPY_GONE and not strength >= STRONG_RETURN:
        text = f"The policy's entropy is {100 * entropy:.0f} % of the maximum: it no longer tries "
        text += "anything new, so it cannot learn anything new."
        advice = "Start a new run with a lower --learning-rate or, with PPO, a higher --ent-coef."
        found.append(Finding(WARNING, "Entropy gone", text, advice))
    if up >= ONE_ACTION or up <= 1 - ONE_ACTION:
        text = f"The paddle goes up at {100 * up:.0f} % of the steps: it is stuck at one edge."
        advice = "Wait some updates; if it stays, start a new run with another --seed or a lower "
        found.append(Finding(WARNING, "One action only", text, f"{advice}--learning-rate."))
    if kl > KL_LARGE:
        text = f"Each update changes the policy by a KL of {kl:.3f}; even {KL_LARGE} is a lot."
        advice = "Lower --learning-rate or --update-epochs."
        found.append(Finding(WARNING, "Steps too large", text, advice))
    if strength < STRONG_RETURN and since < before + STALLED_GAIN:
        text = f"The return has not improved for {STALLED_STEPS:,} steps: its best was "
        text += f"{signed(before)} before and {signed(since)} since."
        advice = "The classic mode takes time; otherwise try another --seed or --learning-rate."
        found.append(Finding(NOTE, "No progress", text, advice))
    if not found:
        text = f"It plays at a return of about {signed(strength)}." if len(returns) else ""
        found.append(Finding(GOOD, "No problems found", text))
    return found


def _mean(record: Record, name: str) -> float:
    """The mean of a column's last values; NaN, which passes every check, if it has none."""
    _, values = record.curve(name)
    return float(np.mean(values[-WINDOW:])) if len(values) else math.nan
