"""How a training is doing, in plain words with advice: pure functions of its figures.

Each check looks for one thing that goes wrong with policy gradients, and says what it saw, what
that means and what to do. Where nothing is wrong it says so.

Covered: the checks, the count of dead units. Not covered: reading a run (`web.library`).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.network import APPEARED, STAYED, VANISHED
from pixelpong.env import features
from pixelpong.items import NUM_PIXELS, Params

GOOD, NOTE, WARNING = "good", "note", "warning"

WINDOW = 10
"""Updates that a figure is averaged over: one alone is noise."""

MIN_UPDATES = 5
"""Before these, the figures are those of a network that knows nothing yet."""

ENTROPY_GONE = 0.05
"""Share of the largest possible entropy. At 5 % some 99 of 100 decisions are always the same, so
nothing new is tried; ten trainings of ours in the fast mode kept 23 % or more to their end."""

STRONG_RETURN = 15.0
"""From here on a policy may well be sure of itself."""

ONE_ACTION = 0.97
"""Share of a single action. A paddle that goes one way nearly always is stuck at the edge; over
ten trainings in the fast mode the share of UP was between 0.24 and 0.38."""

DEAD_NOTE, DEAD_WARNING = 0.25, 0.5
"""Share of hidden units that never switch on in an episode. A few always do, one in four is
capacity that was paid for, one in two is the known sign of too large a step."""

SPIKE = 10.0
"""How many times the usual spread (median deviation from the median) above the usual value a loss
or a norm is a spike. Nine of ten trainings stayed below 9; the tenth had one of 19."""

SPIKE_WINDOW = 100
"""Updates that tell what is usual."""

KL_LARGE = 0.08
"""Nats between the policy before an update and after, averaged. Nine of ten trainings stayed at
0.068 and below; the one that came to 0.145 was the one that learned badly."""

STALLED_STEPS = 1_000_000
"""Steps without progress before it is worth a word; the fast mode needs fewer for all of Pong."""

STALLED_GAIN = 0.5
"""Points of return that count as progress."""

SLOW_SHARE = 0.5
"""Of the time of a round, that workers play. Below, they mostly wait for each other."""

FEW_LEFT = 20
"""Updates in which a lost worker is news."""


@dataclass(frozen=True)
class Finding:
    """One thing to say of a run.

    Attributes:
        level: ``"good"``, ``"note"`` or ``"warning"``.
        title: a few words.
        text: what was seen and what it means.
        advice: what to do; empty where there is nothing to do.
    """

    level: str
    title: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class DeadUnits:
    """Hidden units that no step of an episode switched on.

    Attributes:
        dead: how many.
        of: of how many.
        update: of the agent that was looked at.
    """

    dead: int
    of: int
    update: int


@dataclass(frozen=True)
class Record:
    """What the checks look at.

    Attributes:
        recent: the last updates' figures by column, none left out.
        whole: those of the whole run, possibly thinned out.
        algorithm: ``"reinforce"`` or ``"ppo"``.
        dead: None where nobody has looked yet.
    """

    recent: Mapping[str, Sequence[float | None]]
    whole: Mapping[str, Sequence[float | None]]
    algorithm: str
    dead: DeadUnits | None = None

    def latest(self, name: str, size: int = WINDOW) -> list[float]:
        """The known ones of a column's last figures."""
        return [value for value in self.recent.get(name, ())[-size:] if value is not None]

    def mean(self, name: str, size: int = WINDOW) -> float | None:
        """Their mean."""
        values = self.latest(name, size)
        return math.fsum(values) / len(values) if values else None


def assess(record: Record) -> list[dict[str, str]]:
    """What there is to say of a run, warnings first.

    Args:
        record: its figures.

    Returns:
        Dicts with the keys of `Finding`.
    """
    num_updates = len(record.recent.get("update", ()))
    if num_updates < MIN_UPDATES:
        text = f"It has finished {num_updates} updates; from {MIN_UPDATES} on there is more to say."
        return [asdict(Finding(NOTE, "Too early to tell", text))]
    found = [finding for check in _CHECKS for finding in check(record)]
    found.sort(key=lambda finding: (WARNING, NOTE, GOOD).index(finding.level))
    if not any(finding.level == WARNING for finding in found):
        found.insert(0, Finding(GOOD, "All is well", _summary(record)))
    return [asdict(finding) for finding in found]


def find_dead_units(
    params: Params, fields: Sequence[NDArray[np.uint8]], last_actions: Sequence[int]
) -> NDArray[np.bool_]:
    """Which hidden units never switch on.

    Args:
        params: of either network; three axes of W1 tell the gated one.
        fields: [80, 80] each, as `pixelpong.agent.network.Explanation` has them, of some steps.
        last_actions: for each, the place in `ACTIONS` of the step before; the classic network
            does not look at it.

    Returns:
        [H] bool.
    """
    W1 = params["W1"]
    is_alive = np.zeros(W1.shape[1], np.bool_)
    for field, last_action in zip(fields, last_actions, strict=True):
        if W1.ndim == 3:
            now = (field == STAYED) | (field == APPEARED)
            before = (field == STAYED) | (field == VANISHED)
            inputs = features.observe_features(before, now, last_action)
            sums = W1[np.flatnonzero(inputs), :, 0].sum(axis=0)
        else:
            flat = field.reshape(NUM_PIXELS)
            sums = W1[flat == APPEARED].sum(axis=0) - W1[flat == VANISHED].sum(axis=0)
        is_alive |= sums > 0
    return ~is_alive


def _check_numbers(record: Record) -> Iterator[Finding]:
    for name in ("loss", "value_loss", "grad_norm", "kl", "entropy"):
        values = record.recent.get(name, ())
        if values and values[-1] is None and any(value is not None for value in values):
            text = (
                f"The newest {name.replace('_', ' ')} is not a number: the training has diverged."
            )
            yield Finding(
                WARNING, "Not a number", text, "Lower --learning-rate and resume from a checkpoint."
            )
            return


def _check_spikes(record: Record) -> Iterator[Finding]:
    for name, words in (("loss", "loss"), ("grad_norm", "gradient's norm")):
        values = record.latest(name, SPIKE_WINDOW)
        if len(values) < 3 * WINDOW:
            continue
        usual, newest = statistics.median(values), values[-WINDOW:]
        spread = statistics.median(abs(value - usual) for value in values)
        spread = max(spread, 0.01 * abs(usual), 1e-9)
        if max(newest) > usual + SPIKE * spread:
            text = (
                f"The {words} rose to {max(newest):.3g} within the last {WINDOW} updates, where "
                f"{usual:.3g} is usual."
            )
            advice = "One alone heals; if they come again and again, lower --learning-rate."
            yield Finding(WARNING, "Loss spikes", text, advice)
            return


def _check_entropy(record: Record) -> Iterator[Finding]:
    entropy, strength = record.mean("entropy"), _strength(record)
    largest = math.log(3 if record.algorithm == "ppo" else 2)
    if entropy is None or entropy >= ENTROPY_GONE * largest:
        return
    if strength is not None and strength >= STRONG_RETURN:
        return
    text = (
        f"The policy's entropy is {entropy:.3f} of at most {largest:.2f}: it no longer tries "
        "anything, so it can learn no more from what it does."
    )
    advice = "Start anew with a lower --learning-rate"
    advice += ", or a higher --entropy-bonus." if record.algorithm == "ppo" else "."
    yield Finding(WARNING, "Entropy gone", text, advice)


def _check_actions(record: Record) -> Iterator[Finding]:
    share = record.mean("up_share")
    if share is None or 1 - ONE_ACTION < share < ONE_ACTION:
        return
    way = "up at" if share > 0.5 else "hardly ever up, at"
    text = f"The paddle goes {way} {100 * share:.0f} % of the steps: it is stuck at one edge."
    advice = "Wait some updates; if it stays, start anew with another --seed or a lower "
    yield Finding(WARNING, "One action only", text, advice + "--learning-rate.")


def _check_dead(record: Record) -> Iterator[Finding]:
    if record.dead is None or not record.dead.of:
        return
    share = record.dead.dead / record.dead.of
    if share < DEAD_NOTE:
        return
    text = (
        f"{record.dead.dead} of {record.dead.of} hidden units of the agent of update "
        f"{record.dead.update} never switched on in an episode: they neither help nor learn."
    )
    is_bad = share >= DEAD_WARNING
    advice = "Start anew with a lower --learning-rate." if is_bad else "Fewer --hidden would do."
    yield Finding(WARNING if is_bad else NOTE, "Dead units", text, advice)


def _check_kl(record: Record) -> Iterator[Finding]:
    kl = record.mean("kl")
    if kl is not None and kl > KL_LARGE:
        text = f"Each update changes the policy by a KL of {kl:.3f}; {KL_LARGE} is a lot."
        advice = "Lower --learning-rate or --epochs."
        yield Finding(WARNING, "Steps too large", text, advice)


def _check_progress(record: Record) -> Iterator[Finding]:
    name = _strength_name(record)
    rows = zip(record.whole.get("steps", ()), record.whole.get(name, ()), strict=False)
    known = [(steps, value) for steps, value in rows if steps is not None and value is not None]
    if not known or known[-1][1] >= STRONG_RETURN:
        return
    late = [value for steps, value in known if steps > known[-1][0] - STALLED_STEPS]
    early = [value for steps, value in known if steps <= known[-1][0] - STALLED_STEPS]
    if not early or max(late) >= max(early) + STALLED_GAIN:
        return
    text = (
        f"The return has not improved for {STALLED_STEPS:,} steps: its best was "
        f"{_signed(max(early))} before and {_signed(max(late))} since."
    )
    advice = "Give it time if it is the classic mode, else try another --seed or --learning-rate."
    yield Finding(NOTE, "No progress", text, advice)


def _check_speed(record: Record) -> Iterator[Finding]:
    busy, workers = record.mean("timing.busy_share"), record.mean("timing.workers")
    if busy is not None and busy < SLOW_SHARE and (workers or 1) > 1:
        text = f"The workers play {100 * busy:.0f} % of a round and wait for the rest of it."
        advice = "Are others using the cores? Else try fewer --workers, or more episodes an update."
        yield Finding(NOTE, "Slow", text, advice)


def _check_workers(record: Record) -> Iterator[Finding]:
    counts = record.latest("timing.restarts", FEW_LEFT)
    lost = sum(max(0.0, after - before) for before, after in itertools.pairwise(counts))
    if lost:
        text = (
            f"{lost:.0f} workers died or hung within the last {len(counts)} updates and were "
            "replaced; their episodes were played again."
        )
        advice = "Is there enough memory? The result is the same, only slower."
        yield Finding(WARNING, "Workers lost", text, advice)


_CHECKS: tuple[Callable[[Record], Iterator[Finding]], ...] = (
    _check_numbers,
    _check_spikes,
    _check_entropy,
    _check_actions,
    _check_dead,
    _check_kl,
    _check_progress,
    _check_speed,
    _check_workers,
)


def _strength_name(record: Record) -> str:
    is_estimated = any(value is not None for value in record.whole.get("estimated_return", ()))
    return "estimated_return" if is_estimated else "mean_return_100"


def _strength(record: Record) -> float | None:
    values = record.latest(_strength_name(record))
    return values[-1] if values else None


def _summary(record: Record) -> str:
    strength, entropy = _strength(record), record.mean("entropy")
    parts = ["Nothing in the figures gives cause for concern."]
    if strength is not None:
        parts.append(f"It plays at a return of about {_signed(strength)}.")
    if entropy is not None:
        largest = math.log(3 if record.algorithm == "ppo" else 2)
        parts.append(f"{100 * entropy / largest:.0f} % of the largest entropy is left.")
    return " ".join(parts)


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
