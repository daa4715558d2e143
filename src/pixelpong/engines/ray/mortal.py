"""Becomes a Python script that ends with the process that started it: ``python mortal.py SCRIPT …``

Ray's daemon starts two helpers, which look whether it still lives; but not before they have found
another daemon, for which they wait a minute where that has ended as well.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def main() -> None:
    """Have the kernel end this process with its parent, and become what the words say."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        parent = os.environ.get("RAY_RAYLET_PID")
        if parent and int(parent) != os.getppid():  # it had ended before that
            os._exit(1)
    os.execv(sys.executable, [sys.executable, "-u", *sys.argv[1:]])


if __name__ == "__main__":
    main()
