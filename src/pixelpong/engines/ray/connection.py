"""Connecting to a Ray cluster, or starting a local one for a while."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from pixelpong.engines.address import LOCAL, find_cluster
from pixelpong.engines.ray.cluster import Cluster
from pixelpong.errors import MAX_GOT, WorkerError, refusing
from pixelpong.locking import scratch_folder
from pixelpong.machine import collect_versions, count_cores

STORE_BYTES = 256 * 2**20  # object store of a local Ray; it holds parameters of several updates
_FOLDER = "pixelpong.ray"
# Variables that change what a Ray cluster's jobs run in; a local Ray must not obey them.
_FOR_OTHERS = "RAY_RUNTIME_ENV_HOOK", "RAY_JOB_CONFIG_JSON_ENV_VAR"


@contextlib.contextmanager
def connected(
    address: str | None, num_workers: int | None, when_lost: str = ""
) -> Iterator[Cluster]:
    """Connect to a cluster, or start a local one and end it afterwards.

    The address is ``"auto"`` or ``"HOST:PORT"``. Without one here or in the variable RAY_ADDRESS, a
    local Ray is started, with `num_workers` cores or all of them. If the process is already
    connected, the connection stays. `when_lost` is the advice if the cluster is lost later.
    """
    if ray.is_initialized():  # in a notebook, or in a program that uses Ray itself
        with contextlib.closing(Cluster(when_lost)) as cluster:
            yield cluster
        return
    address = find_cluster(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    handler = signal.getsignal(signal.SIGTERM)  # saved because Ray replaces it
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as during_start:
        if address == LOCAL:
            options |= {"num_cpus": num_workers or count_cores(), "include_dashboard": False}
            options |= {"object_store_memory": STORE_BYTES}
            during_start.enter_context(kept_local(stack.enter_context(local_folder())))
        stack.callback(ray.shutdown)
        _init(address, options)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
        during_start.close()
        yield stack.enter_context(contextlib.closing(Cluster(when_lost)))


def _init(address: str, options: dict[str, Any]) -> None:
    """Connect; if a local Ray starts too slowly, as on a busy machine, try once more."""
    failure = f"cannot connect to a Ray cluster at {address}"
    advice = "check it with 'ray status' on its head node"
    if address == LOCAL:
        failure = "cannot start Ray"
        advice = "see Ray's message with --debug, or use --engine threads"
        with contextlib.suppress(Exception):
            ray.init(address, **options)
            return
        ray.shutdown()
    try:
        ray.init(address, **options)
    except Exception as error:
        raise WorkerError(f"{failure}: {in_one_line(error)}; {advice}") from error


@contextlib.contextmanager
def local_folder() -> Iterator[Path]:
    """Make a folder for a local Ray's files; afterwards remove it and earlier leftovers."""
    parent = Path(tempfile.gettempdir())
    if os.name == "posix" and len(str(parent)) > 20:  # a socket's path may have 107 characters
        parent = Path("/tmp")  # and Ray adds 70
    with contextlib.ExitStack() as stack:
        with refusing(f"cannot create a folder in {parent}", WorkerError, "check its free space"):
            folder = stack.enter_context(scratch_folder(parent, _FOLDER, 0o700))
        yield folder


@contextlib.contextmanager
def kept_local(folder: Path) -> Iterator[None]:
    """Context manager in which Ray starts with its files in `folder` and no outside network.

    Ray's process for usage statistics starts even if these are switched off, and then asks the
    network which cloud it is in. A nonexistent proxy keeps these requests on this machine.
    """
    # Otherwise Ray would write its secret to the home folder. This variable stays set.
    os.environ.setdefault("RAY_AUTH_TOKEN", os.urandom(32).hex())
    settings = {
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
        # If the driver is killed during the start, Ray's helpers search for it this long.
        "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
        # A process that the engine ends has nothing to save. If it does not answer Ray, it is
        # killed after this time instead of after 5 s.
        "RAY_kill_worker_timeout_milliseconds": "1000",
        # Arguments and results up to this size are sent with the call, which takes half the time
        # of the object store.
        "RAY_max_direct_call_object_size": str(2**20),
        "no_proxy": "localhost,127.0.0.1",
        **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    }
    before = dict(os.environ)
    os.environ.update(settings)
    for name in _FOR_OTHERS:
        os.environ.pop(name, None)
    try:
        yield
    finally:  # variables that Ray has set stay, because its next cluster needs them
        for name in settings:
            os.environ.pop(name)
        os.environ.update(before)


def require_versions(versions: dict[str, str]) -> None:
    """Raise a `WorkerError` if this Ray process and the driver have different versions."""
    installed = collect_versions()
    different = [name for name in versions if installed.get(name) != versions[name]]
    if different:
        got = ", ".join(f"{name} {installed.get(name)}" for name in different)
        wanted = ", ".join(f"{name} {versions[name]}" for name in different)
        advice = "install the same versions on every node, then resume"
        raise WorkerError(f"{socket.gethostname()} has {got} instead of {wanted}; {advice}")


def in_one_line(error: BaseException) -> str:
    """Return the first sentences of Ray's message, without its pages of advice."""
    text = " ".join(str(error).split())
    if len(text) > MAX_GOT:
        sentences, _, _ = text[:MAX_GOT].rpartition(". ")
        text = sentences or f"{text[:MAX_GOT]}…"
    return f"{type(error).__name__}: {text}"
