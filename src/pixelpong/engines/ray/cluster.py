"""The cluster that this process is connected to: its nodes, and whether it is still there.

If the head is lost, Ray's core ends this process after 10 to 60 seconds; if the Ray of this machine
is lost, at the next call that needs it. Neither leaves time to save anything. So a connection is
held open to both: the system closes it at once when the process at its other end dies.
"""

from __future__ import annotations

import contextlib
import socket
import time
from typing import NamedTuple

import ray
from ray import exceptions
from ray.autoscaler.v2.sdk import get_cluster_status

from pixelpong.engines.address import connect, is_closed, split_address
from pixelpong.errors import WorkerError

LOST_TRIES = 15  # to connect to a head elsewhere, which a broken network may hide for a while
TRY_SECONDS = 1.0  # between two tries, and for each


class Node(NamedTuple):
    """A living node."""

    name: str
    cpus: int
    free: int  # of its CPUs, about a second ago


class Cluster:
    """The connected cluster."""

    def __init__(self, advice: str) -> None:
        """Connect to its head and to the Ray of this machine; `advice` is for when it is lost."""
        self._advice = advice
        context = ray.get_runtime_context()
        self._address, name = context.gcs_address, context.get_node_id()
        (here,) = (node for node in ray.nodes() if node["NodeID"] == name)
        host = here["NodeManagerAddress"]
        is_head_here = split_address(self._address, "Ray's address")[0] == host
        self._head = _End(f"the head at {self._address}", self._address, is_here=is_head_here)
        raylet = f"{host}:{here['NodeManagerPort']}"
        self._raylet = _End("Ray on this machine", raylet, is_here=True)
        self._nodes: list[Node] = []

    def check(self) -> None:
        """Raise a `WorkerError` if the cluster is lost; cheap enough to call before each step."""
        for end in (self._head, self._raylet):
            if end.is_lost():
                what = f"The Ray cluster is lost: {end.name} does not answer ({end.reason})"
                raise WorkerError(f"{what}; {self._advice}")

    def nodes(self) -> list[Node]:
        """The living nodes, also a moment ago if the head does not answer; checks it anew."""
        self._head.renew()
        self.check()
        if self._head.is_open:
            with contextlib.suppress(exceptions.RpcError):
                self._nodes = self._ask()
        return self._nodes

    def close(self) -> None:
        """Close the connections that are held open."""
        self._head.close()
        self._raylet.close()

    def _ask(self) -> list[Node]:
        status = get_cluster_status(self._address)  # `ray.nodes` does not know which CPUs are free
        found = []
        for node in (*status.active_nodes, *status.idle_nodes):
            cpus, free = (
                int(resources.get("CPU", 0))
                for resources in (node.total_resources(), node.available_resources())
            )
            found.append(Node(str(node.node_id), cpus, free))
        return sorted(found)


class _End:
    """A connection that is held open and never used."""

    def __init__(self, name: str, address: str, *, is_here: bool) -> None:
        self.name, self.reason = name, ""
        self._place, self._is_here = split_address(address, "Ray's address"), is_here
        self._socket: socket.socket | None = None
        self._failures, self._next_try = 0, 0.0
        self._connect()

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def is_lost(self) -> bool:
        """Whether nobody is there any more; connects again if the connection was closed."""
        if self._socket is None or is_closed(self._socket):
            self._connect()
        return self._failures >= LOST_TRIES

    def renew(self) -> None:
        """Connect anew: a machine without power closes nothing."""
        self._connect()

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _connect(self) -> None:
        self.close()
        if time.monotonic() < self._next_try:
            return
        try:
            self._socket = connect(*self._place, TRY_SECONDS)
            self._failures = 0
        except OSError as error:
            self.reason = error.strerror or str(error)
            # On this machine, nobody listens if the process is gone.
            is_gone = self._is_here and isinstance(error, ConnectionRefusedError)
            self._failures = LOST_TRIES if is_gone else self._failures + 1
            self._next_try = time.monotonic() + TRY_SECONDS
