"""The cluster that this process is connected to: its nodes, and checks that it still exists.

If the head is lost, Ray's core ends this process after 10 to 60 seconds. If Ray on this machine is
lost, it ends this process at the next call that needs it. Neither leaves time to save anything. So
this module holds a connection to each of them open; when the process at the other end dies, the
system closes the connection at once.
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

LOST_TRIES = 15  # failed tries until a remote head counts as lost; networks may fail for a while
TRY_SECONDS = 1.0  # time between two tries, and time limit of each


class Node(NamedTuple):
    """A living node."""

    name: str
    cpus: int
    free: int  # number of CPUs that were free about a second ago


class Cluster:
    """The connected cluster."""

    def __init__(self, advice: str = "") -> None:
        """Connect to its head and to Ray on this machine.

        `advice` is part of the error if the cluster is lost.
        """
        self.advice = advice or "connect to another one"
        context = ray.get_runtime_context()
        self._address, node_id = context.gcs_address, context.get_node_id()
        (node,) = (node for node in ray.nodes() if node["NodeID"] == node_id)
        host = node["NodeManagerAddress"]
        is_local = split_address(self._address, "Ray's address")[0] == host
        self._head = _Link(f"the head at {self._address}", self._address, is_local=is_local)
        raylet = f"{host}:{node['NodeManagerPort']}"
        self._raylet = _Link("Ray on this machine", raylet, is_local=True)
        self._nodes: list[Node] = []

    def check(self) -> None:
        """Raise a `WorkerError` if the cluster is lost; cheap enough to call before each step."""
        for link in (self._head, self._raylet):
            if link.is_lost():
                problem = f"The Ray cluster is lost: {link.name} does not answer ({link.reason})"
                raise WorkerError(f"{problem}; {self.advice}")

    def wait_until_sure(self) -> None:
        """Wait until Ray on this machine answers; raise a `WorkerError` if the cluster is lost.

        While Ray's process dies, its connections stay open for a few milliseconds, and a call that
        needs it would end this process too.
        """
        self._raylet.renew()
        while not self._raylet.is_open:
            self.check()
            time.sleep(TRY_SECONDS / 10)

    def nodes(self) -> list[Node]:
        """Return the living nodes, or the last known ones if the head does not answer now."""
        self._head.renew()
        self.check()
        if self._head.is_open:
            with contextlib.suppress(exceptions.RpcError):
                self._nodes = self._ask()
        return self._nodes

    def close(self) -> None:
        """Close the links."""
        self._head.close()
        self._raylet.close()

    def _ask(self) -> list[Node]:
        status = get_cluster_status(self._address)  # `ray.nodes` does not tell which CPUs are free
        nodes = []
        for node in (*status.active_nodes, *status.idle_nodes):
            cpus, free = node.total_resources(), node.available_resources()
            nodes.append(Node(str(node.node_id), int(cpus.get("CPU", 0)), int(free.get("CPU", 0))))
        return sorted(nodes)


class _Link:
    """A connection that is held open only to notice when its other end dies."""

    def __init__(self, name: str, address: str, *, is_local: bool) -> None:
        self.name, self.reason = name, ""
        self._address, self._is_local = split_address(address, "Ray's address"), is_local
        self._socket: socket.socket | None = None
        self._failures, self._next_try = 0, 0.0
        self._connect()

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def is_lost(self) -> bool:
        """Whether the other end is gone for good; reconnects if the connection was closed."""
        if self._socket is None or is_closed(self._socket):
            self._connect()
        return self._failures >= LOST_TRIES

    def renew(self) -> None:
        """Connect again, because a machine that loses power does not close its connections."""
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
            self._socket = connect(*self._address, TRY_SECONDS)
            self._failures = 0
        except OSError as error:
            self.reason = error.strerror or str(error)
            # On this machine, a refused connection means that the process is gone.
            is_gone = self._is_local and isinstance(error, ConnectionRefusedError)
            self._failures = LOST_TRIES if is_gone else self._failures + 1
            self._next_try = time.monotonic() + TRY_SECONDS
