"""How a training is doing, in plain words with advice: pure functions of its metrics.

Each check looks for one thing that goes wrong with policy gradients, and says what it found, what
that means and what to do. If nothing is wrong, one finding says so.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

GOOD, NOTE, WARNING = "good", "note", "warning"

WINDOW = 10  # updates that are averaged: a single one is noise
MIN_UPDATES = 5  # before them the network knows nothing yet

ENTROPY_GONE = 0.05
"""Share of the largest possible entropy. At 5 % about 99 of 100 decisions are always the same, so
nothing new is tried. Ten of our trainings in the fast mode kept 23 % or more to their end."""

STRONG_RETURN = 15.0  # from here, a policy may well be sure of itself

ONE_ACTION = 0.97
"""Share of a single action. A paddle that nearly always goes one way is stuck at the edge. In ten
trainings in the fast mode the share of UP was between 0.24 and 0.38."""

KL_LARGE = 0.08
"""Mean nats between the policy before and after an update. Nine of ten trainings stayed at 0.068 or
below; the one that reached 0.145 learned badly."""

STALLED_STEPS = 1_000_000  # without progress; the fast mode needs fewer to learn all of Pong
STALLED_GAIN = 0.5  # of return, that counts as progress

Columns = Mapping[str, Sequence[float | None]]

Finding = dict[str, str]  # ``level``, ``title``, ``text`` and ``advice``, which may be empty


@dataclass(frozen=True)
class Record:
    """The metrics that the checks examine, by column."""

    recent: Columns  # of the last updates, complete
    whole: Columns  # of the whole run, possibly thinned out
    algorithm: str  # ``"reinforce"`` or ``"ppo"``

    def mean(self, name: str) -> float:
        """The mean of a column's last values; NaN, which passes every check, if there are none."""
        values = [value for value in self.recent.get(name, ())[-WINDOW:] if value is not None]
        return statistics.fmean(values) if values else math.nan

    def returns(self) -> list[tuple[float, float]]:
        """Steps, and how well it plays: the estimated return, or else the mean of 100."""
        is_estimated = any(value is not None for value in self.whole.get("estimated_return", ()))
        name = "estimated_return" if is_estimated else "mean_return_100"
        rows = zip(self.whole.get("steps", ()), self.whole.get(name, ()), strict=False)
        return [(steps, value) for steps, value in rows if None not in (steps, value)]  # type: ignore[misc]

    def strength(self) -> float:
        """The newest return; NaN if there is none."""
        return [(0.0, math.nan), *self.returns()][-1][1]

    def entropy_share(self) -> float:
        """The entropy as a share of that of equally likely actions."""
        return self.mean("entropy") / math.log(3 if self.algorithm == "ppo" else 2)


def assess(record: Record) -> list[Finding]:
    """The findings about a run, warnings first."""
    num_updates = len(record.recent.get("update", ()))
    if num_updates < MIN_UPDATES:
        text = f"It has finished {num_updates} updates; checks begin after {MIN_UPDATES}."
        return [_find(NOTE, "Too early to tell", text)]
    found = [finding for check in _CHECKS for finding in check(record)]
    found.sort(key=lambda finding: (WARNING, NOTE, GOOD).index(finding["level"]))
    if not any(finding["level"] == WARNING for finding in found):
        found.insert(0, _find(GOOD, "All is well", _summary(record)))
    return found


def _find(level: str, title: str, text: str, advice: str = "") -> Finding:
    return {"level": level, "title": title, "text": text, "advice": advice}


def _check_numbers(record: Record) -> Iterator[Finding]:
    for name in ("loss", "value_loss", "grad_norm", "kl", "entropy"):
        values = record.recent.get(name, ())
        if values and values[-1] is None and any(value is not None for value in values):
            words = name.replace("_", " ")
            text = f"The newest {words} is not a number: the training has diverged."
            advice = "Lower --learning-rate and resume from a checkpoint."
            yield _find(WARNING, "Not a number", text, advice)
            return


def _check_entropy(record: Record) -> Iterator[Finding]:
    share = record.entropy_share()
    if share < ENTROPY_GONE and not record.strength() >= STRONG_RETURN:
        text = f"The policy's entropy is {100 * share:.0f} % of the largest: it no longer "
        text += "tries anything, so it can learn no more from what it does."
        more = ", or a higher --ent-coef." if record.algorithm == "ppo" else "."
        advice = "Start a new run with a lower --learning-rate" + more
        yield _find(WARNING, "Entropy gone", text, advice)


def _check_actions(record: Record) -> Iterator[Finding]:
    share = record.mean("up_share")
    if share >= ONE_ACTION or share <= 1 - ONE_ACTION:
        way = "up at" if share > 0.5 else "hardly ever up, at"
        text = f"The paddle goes {way} {100 * share:.0f} % of the steps: it is stuck at one edge."
        advice = "Wait some updates; if it stays, start a new run with another --seed or a lower "
        yield _find(WARNING, "One action only", text, advice + "--learning-rate.")


def _check_kl(record: Record) -> Iterator[Finding]:
    kl = record.mean("kl")
    if kl > KL_LARGE:
        text = f"Each update changes the policy by a KL of {kl:.3f}; {KL_LARGE} is a lot."
        yield _find(WARNING, "Steps too large", text, "Lower --learning-rate or --update-epochs.")


def _check_progress(record: Record) -> Iterator[Finding]:
    known = record.returns()
    if not known or known[-1][1] >= STRONG_RETURN:
        return
    late = [value for steps, value in known if steps > known[-1][0] - STALLED_STEPS]
    early = [value for _, value in known[: len(known) - len(late)]]
    if early and max(late) < max(early) + STALLED_GAIN:
        text = f"The return has not improved for {STALLED_STEPS:,} steps: its best was "
        text += f"{_signed(max(early))} before and {_signed(max(late))} since."
        advice = "The classic mode takes time; else try another --seed or --learning-rate."
        yield _find(NOTE, "No progress", text, advice)


_CHECKS = (_check_numbers, _check_entropy, _check_actions, _check_kl, _check_progress)


def _summary(record: Record) -> str:
    strength, share = record.strength(), record.entropy_share()
    parts = ["Nothing in the figures gives cause for concern."]
    if not math.isnan(strength):
        parts.append(f"It plays at a return of about {_signed(strength)}.")
    if not math.isnan(share):
        parts.append(f"{100 * share:.0f} % of the largest entropy is left.")
    return " ".join(parts)


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
