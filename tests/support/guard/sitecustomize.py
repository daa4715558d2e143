"""Python imports this at its start where this folder is on PYTHONPATH: see `network_guard`."""

import network_guard

network_guard.install()
