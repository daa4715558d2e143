"""Teaches a program to play Atari Pong from its screen, with policy gradients.

    pixelpong train                      a new run, from nothing
    pixelpong resume runs/classic-001    go on, to the same bits as without the break

    pixelpong.Run("runs/classic-001")    the same run in a notebook: .plot(), .replay()

`pixelpong.train` is the map of the code. Importing this package loads nothing but this file.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pixelpong.report.notebook import Run as Run
else:

    def __getattr__(name):
        """Load `Run` when somebody asks for it."""
        if name == "Run":
            from pixelpong.report.notebook import Run

            return Run
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return [*globals(), "Run"]
