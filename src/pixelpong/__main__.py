"""``python -m pixelpong`` is ``pixelpong``."""

import sys

from pixelpong.cli import main

if __name__ == "__main__":
    sys.exit(main())
