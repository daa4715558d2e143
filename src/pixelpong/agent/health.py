"""How a training is doing, in plain words with advice: pure functions of its figures.

Each check looks for one thing that goes wrong with policy gradients, and says what it found, what
that means and what to do. If nothing is wrong, one finding says so.

Covered: the checks. Not covered: reading a run, counting dead units (`pixelpong.faces.page`).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from pixelpong.errors import number_of

GOOD, NOTE, WARNING = "good", "note", "warning"

WINDOW = 10
"""Updates that a figure is averaged over: a single one is noise."""

MIN_UPDATES = 5
"""Before this many updates, the figures are those of a network that knows nothing yet."""

ENTROPY_GONE = 0.05
"""Share of the largest possible entropy. At 5 % about 99 of 100 decisions are always the same, so
nothing new is tried. Ten of our trainings in the fast mode kept 23 % or more to their end."""

STRONG_RETURN = 15.0
"""From this return on, a policy may well be sure of itself."""

ONE_ACTION = 0.97
"""Share of a single action. A paddle that nearly always goes one way is stuck at the edge. In ten
trainings in the fast mode the share of UP was between 0.24 and 0.38."""

DEAD_NOTE, DEAD_WARNING = 0.25, 0.5
"""Share of hidden units that never switch on in an episode. There are always a few. One in four is
wasted capacity; one in two is the known sign of steps that are too large."""

SPIKE = 10.0
"""A loss or a norm is a spike if it is this many times the usual spread (median deviation from the
median) above the usual value. Nine of ten trainings stayed below 9; the tenth had one of 19."""

SPIKE_WINDOW = 100
"""Updates that tell what is usual."""

KL_LARGE = 0.08
"""Mean nats between the policy before and after an update. Nine of ten trainings stayed at 0.068 or
below; the one that reached 0.145 learned badly."""

STALLED_STEPS = 1_000_000
"""Steps without progress before a note; the fast mode needs fewer to learn all of Pong."""

STALLED_GAIN = 0.5
"""Points of return that count as progress."""

SLOW_SHARE = 0.5
"""Share of a round's time that workers play. Below it, they mostly wait for each other."""

FEW_LEFT = 20
"""Updates for which a lost worker is reported."""


@dataclass(frozen=True)
class Finding:
    """One finding about a run.

    Attributes:
        level: ``"good"``, ``"note"`` or ``"warning"``.
        title: a few words.
        text: what was found and what it means.
        advice: what to do; empty if nothing needs to be done.
    """

    level: str
    title: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class DeadUnits:
    """Hidden units that no step of an episode switched on.

    Attributes:
        dead: their number.
        of: the number of all hidden units.
        update: of the agent examined.
    """

    dead: int
    of: int
    update: int


@dataclass(frozen=True)
class Record:
    """The figures that the checks examine.

    Attributes:
        recent: the last updates' figures by column, complete.
        whole: those of the whole run, possibly thinned out.
        algorithm: ``"reinforce"`` or ``"ppo"``.
        dead: None if nobody has counted yet.
    """

    recent: Mapping[str, Sequence[float | None]]
    whole: Mapping[str, Sequence[float | None]]
    algorithm: str
    dead: DeadUnits | None = None

    def latest(self, name: str, size: int = WINDOW) -> list[float]:
        """The last figures of a column, without unknown ones."""
        return [value for value in self.recent.get(name, ())[-size:] if value is not None]

    def mean(self, name: str) -> float:
        """The mean of `latest`; NaN, which no bound is above or below, if it is empty."""
        values = self.latest(name)
        return statistics.fmean(values) if values else math.nan

    def strength(self) -> tuple[str, float]:
        """The column that measures how well it plays, and its newest figure, or NaN."""
        is_estimated = any(value is not None for value in self.whole.get("estimated_return", ()))
        name = "estimated_return" if is_estimated else "mean_return_100"
        return name, [math.nan, *self.latest(name)][-1]

    def largest_entropy(self) -> float:
        """The entropy of equally likely actions."""
        return math.log(3 if self.algorithm == "ppo" else 2)


def assess(record: Record) -> list[dict[str, str]]:
    """The findings about a run, warnings first.

    Args:
        record: its figures.

    Returns:
        Dicts with the keys of `Finding`.
    """
    num_updates = len(record.recent.get("update", ()))
    if num_updates < MIN_UPDATES:
        text = f"It has finished {num_updates} updates; checks begin after {MIN_UPDATES}."
        return [asdict(Finding(NOTE, "Too early to tell", text))]
    found = [finding for check in _CHECKS for finding in check(record)]
    found.sort(key=lambda finding: (WARNING, NOTE, GOOD).index(finding.level))
    if not any(finding.level == WARNING for finding in found):
        found.insert(0, Finding(GOOD, "All is well", _summary(record)))
    return [asdict(finding) for finding in found]


def _check_numbers(record: Record) -> Iterator[Finding]:
    for name in ("loss", "value_loss", "grad_norm", "kl", "entropy"):
        values = record.recent.get(name, ())
        if values and values[-1] is None and any(value is not None for value in values):
            words = name.replace("_", " ")
            text = f"The newest {words} is not a number: the training has diverged."
            advice = "Lower --learning-rate and resume from a checkpoint."
            yield Finding(WARNING, "Not a number", text, advice)
            return


def _check_spikes(record: Record) -> Iterator[Finding]:
    for name, words in (("loss", "loss"), ("grad_norm", "gradient's norm")):
        values = record.latest(name, SPIKE_WINDOW)
        if len(values) < 3 * WINDOW:
            continue
        usual, newest = statistics.median(values), max(values[-WINDOW:])
        spread = statistics.median(abs(value - usual) for value in values)
        if newest > usual + SPIKE * max(spread, 0.01 * abs(usual), 1e-9):
            text = f"The {words} rose to {newest:.3g} within the last {WINDOW} updates; "
            text += f"{usual:.3g} is usual."
            advice = "A single one is harmless; if they keep coming, lower --learning-rate."
            yield Finding(WARNING, "Loss spikes", text, advice)
            return


def _check_entropy(record: Record) -> Iterator[Finding]:
    entropy, largest = record.mean("entropy"), record.largest_entropy()
    _, strength = record.strength()
    if entropy < ENTROPY_GONE * largest and not strength >= STRONG_RETURN:
        text = f"The policy's entropy is {entropy:.3f} of at most {largest:.2f}: it no longer "
        text += "tries anything, so it can learn no more from what it does."
        more = ", or a higher --entropy-bonus." if record.algorithm == "ppo" else "."
        advice = "Start a new run with a lower --learning-rate" + more
        yield Finding(WARNING, "Entropy gone", text, advice)


def _check_actions(record: Record) -> Iterator[Finding]:
    share = record.mean("up_share")
    if share >= ONE_ACTION or share <= 1 - ONE_ACTION:
        way = "up at" if share > 0.5 else "hardly ever up, at"
        text = f"The paddle goes {way} {100 * share:.0f} % of the steps: it is stuck at one edge."
        advice = "Wait some updates; if it stays, start a new run with another --seed or a lower "
        yield Finding(WARNING, "One action only", text, advice + "--learning-rate.")


def _check_dead(record: Record) -> Iterator[Finding]:
    dead = record.dead
    if dead is None or dead.dead < DEAD_NOTE * dead.of or not dead.of:
        return
    text = f"{dead.dead} of {dead.of} hidden units of the agent of update {dead.update} never "
    text += "switched on in an episode: they neither help nor learn."
    if dead.dead >= DEAD_WARNING * dead.of:
        yield Finding(WARNING, "Dead units", text, "Start a new run with a lower --learning-rate.")
    else:
        yield Finding(NOTE, "Dead units", text, "A smaller --hidden would be enough.")


def _check_kl(record: Record) -> Iterator[Finding]:
    kl = record.mean("kl")
    if kl > KL_LARGE:
        text = f"Each update changes the policy by a KL of {kl:.3f}; {KL_LARGE} is a lot."
        yield Finding(WARNING, "Steps too large", text, "Lower --learning-rate or --epochs.")


def _check_progress(record: Record) -> Iterator[Finding]:
    name, _ = record.strength()
    rows = zip(record.whole.get("steps", ()), record.whole.get(name, ()), strict=False)
    known = [(steps, value) for steps, value in rows if steps is not None and value is not None]
    if not known or known[-1][1] >= STRONG_RETURN:
        return
    late = [value for steps, value in known if steps > known[-1][0] - STALLED_STEPS]
    early = [value for _, value in known[: len(known) - len(late)]]
    if early and max(late) < max(early) + STALLED_GAIN:
        text = f"The return has not improved for {STALLED_STEPS:,} steps: its best was "
        text += f"{_signed(max(early))} before and {_signed(max(late))} since."
        advice = "The classic mode takes time; else try another --seed or --learning-rate."
        yield Finding(NOTE, "No progress", text, advice)


def _check_speed(record: Record) -> Iterator[Finding]:
    busy, workers = record.mean("timing.busy_share"), record.mean("timing.workers")
    if busy < SLOW_SHARE and workers > 1:
        text = f"The workers play for {100 * busy:.0f} % of a round and wait for the rest."
        advice = "Do others use the cores? Else try fewer --workers or more episodes per update."
        yield Finding(NOTE, "Slow", text, advice)


def _check_workers(record: Record) -> Iterator[Finding]:
    counts = record.latest("timing.restarts", FEW_LEFT)
    lost = sum(max(0.0, after - before) for before, after in itertools.pairwise(counts))
    if lost:
        text = f"{number_of(int(lost), 'worker')} died or hung within the last {len(counts)} "
        text += "updates; what they played was played again."
        advice = "Is there enough memory? The result is the same, only slower."
        yield Finding(WARNING, "Workers lost", text, advice)


_CHECKS = (
    _check_numbers, _check_spikes, _check_entropy, _check_actions, _check_dead, _check_kl,
    _check_progress, _check_speed, _check_workers,
)  # fmt: skip


def _summary(record: Record) -> str:
    (_, strength), entropy = record.strength(), record.mean("entropy")
    parts = ["Nothing in the figures gives cause for concern."]
    if not math.isnan(strength):
        parts.append(f"It plays at a return of about {_signed(strength)}.")
    if not math.isnan(entropy):
        share = entropy / record.largest_entropy()
        parts.append(f"{100 * share:.0f} % of the largest entropy is left.")
    return " ".join(parts)


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
