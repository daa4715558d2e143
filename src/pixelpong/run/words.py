"""Returns and times in words, the same wherever they are shown."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

MIN_GAMES = 10  # from which an interval is shown
TOO_FEW = "too few games for an interval"


def signed(value: float | None, digits: int = 1) -> str:
    """A return, with its sign; a dash if there is none. A half is rounded up, as on the page.

    >>> signed(18.25), signed(-3.0, 2), signed(-0.04), signed(None)
    ('+18.3', '−3.00', '+0.0', '–')
    """
    if value is None:
        return "–"
    rounded = Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:+z.{digits}f}".replace("-", "−")


def describe_mean(mean: float, ci95: tuple[float, float], games: int) -> str:
    """The mean return of some games, with its 95 % interval.

    >>> print(describe_mean(18.475, (18.105, 18.83), 200))
    +18.48 (+18.11 to +18.83) over 200 games
    >>> print(describe_mean(-21.0, (-21.0, -21.0), 1))
    −21.00 (too few games for an interval) over 1 game
    """
    low, high = (signed(end, 2) for end in ci95)
    within = f"{low} to {high}" if games >= MIN_GAMES else TOO_FEW
    return f"{signed(mean, 2)} ({within}) over {games:,} game{'s' * (games != 1)}"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> duration(46.2), duration(7322)
    ('0:46', '2:02:02')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def describe_times(training: float | None = None, total: float | None = None) -> str:
    """The times of a run, with their names: training leaves out evaluations.

    >>> describe_times(119.0, 7322.0), describe_times(total=51.0)
    ('1:59 of training, 2:02:02 in total', '0:51 in total')
    """
    named = (training, "of training"), (total, "in total")
    return ", ".join(f"{duration(each)} {name}" for each, name in named if each is not None)
