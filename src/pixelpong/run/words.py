"""Text for returns, scores and times, which are the same wherever they appear."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from pixelpong.config.protocols import PONG
from pixelpong.scores import find_scores, human_normalised


def signed(value: float | None, digits: int = 1) -> str:
    """Format a return with its sign, unless it is 0; None is a dash.

    Halves are rounded up. The page has the same signs and the same rounding.

    >>> signed(18.25), signed(-3.0, 2), signed(-0.04), signed(None)
    ('+18.3', '−3.00', '0.0', '–')
    """
    if value is None:
        return "–"
    rounded = Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else f"{0:.{digits}f}"


def in_game(value: float | None, game: str, digits: int = 1) -> str:
    """Format a return as its game shows it: `signed` in Pong, otherwise as a score.

    >>> in_game(18.25, "pong"), in_game(30.52, "breakout", 2), in_game(42054.7, "seaquest")
    ('+18.3', '30.5', '42,055')
    """
    if game == PONG or value is None:
        return signed(value, digits)
    text = f"{value:,.{min(digits, 1) if abs(value) < 1000 else 0}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.removeprefix("-")


def percent(share: float | None) -> str:
    """Format a share in percent; None is a dash.

    >>> percent(1.016), percent(-0.064), percent(None)
    ('102 %', '−6 %', '–')
    """
    return "–" if share is None else f"{round(100 * share):,} %".replace("-", "−")


def compare(value: float, game: str) -> str:
    """Describe a score by those of random play and a person; "" if they are not known.

    >>> compare(16.1, "breakout")
    'human-normalised 50 % (random 1.7, human 30.5)'
    """
    scores = find_scores(game)
    if scores is None:
        return ""
    ends = f"random {in_game(scores.random, game)}, human {in_game(scores.human, game)}"
    return f"human-normalised {percent(human_normalised(game, value))} ({ends})"


def duration(seconds: float) -> str:
    """Format seconds as minutes and seconds, with hours if there are any.

    >>> duration(46.2), duration(7322)
    ('0:46', '2:02:02')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def describe_times(training: float | None = None, total: float | None = None) -> str:
    """Format a run's times with their names; the training time leaves out evaluations.

    >>> describe_times(119.0, 7322.0), describe_times(total=51.0)
    ('1:59 of training, 2:02:02 in total', '0:51 in total')
    """
    named = (training, "of training"), (total, "in total")
    return ", ".join(f"{duration(each)} {name}" for each, name in named if each is not None)
