"""A cluster of several nodes on one machine, for demonstrations and tests: its nodes can be lost.

Each node has processes of its own, as if it was a machine; they share cores and memory.
"""

from __future__ import annotations

import contextlib
from typing import Any

from ray.cluster_utils import Cluster

from pixelpong.engines.ray.connection import environment, local_folder

_NODE_STORE_BYTES = 100 * 2**20


class LocalCluster:
    """A head node, which has no workers, and nodes with one worker each."""

    def __init__(self, num_nodes: int) -> None:
        """Start the head and the nodes; takes some seconds each."""
        self._exit = contextlib.ExitStack()
        folder = self._exit.enter_context(local_folder())
        # Ray also writes the address down for this machine's "auto": not for others to find.
        (folder / "ray").mkdir()
        self._exit.enter_context(environment("RAY_TMPDIR", str(folder)))
        head = {
            "num_cpus": 0,
            "temp_dir": str(folder),
            "include_dashboard": False,
            "object_store_memory": _NODE_STORE_BYTES,
        }
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._exit.callback(self._cluster.shutdown)
        self._nodes: list[Any] = []
        for _ in range(num_nodes):
            self.add_node()

    @property
    def address(self) -> str:
        """Where a driver connects to it."""
        return str(self._cluster.address)

    def add_node(self) -> None:
        """Start another node."""
        node = self._cluster.add_node(num_cpus=1, object_store_memory=_NODE_STORE_BYTES)
        self._nodes.append(node)

    def lose_node(self) -> None:
        """End the newest node's processes without grace, as when a machine loses power."""
        self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)

    def close(self) -> None:
        """End all nodes and leave nothing behind."""
        self._exit.close()
