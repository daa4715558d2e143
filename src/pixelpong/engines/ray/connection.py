"""Connecting to a Ray cluster, or starting our own Ray for a while."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from pixelpong.errors import ConfigError, WorkerError, expected, refusing
from pixelpong.machine import collect_versions, count_cores

CONNECT_TIMEOUT = 5.0  # seconds for the address to accept the connection and to send something
STORE_BYTES = 256 * 2**20  # object store of our own Ray: the parameters of several updates
_FOLDER = "pixelpong-ray"


@contextlib.contextmanager
def connected(address: str | None, num_workers: int | None) -> Iterator[None]:
    """Connect to a cluster; if this starts one, end it afterwards.

    The address is ``"auto"`` or ``"HOST:PORT"``. Without one here or in the variable RAY_ADDRESS,
    Ray is started here, with `num_workers` cores or all. A connected process stays connected.
    """
    if ray.is_initialized():  # in a notebook, or in a program that uses Ray itself
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    advice = "see it with 'ray status' on its head node"
    own_handler = signal.getsignal(signal.SIGTERM)  # Ray replaces it
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as beginning:
        if address == "local":
            advice = "see Ray's message with --debug, or use --engine threads"
            options |= {"num_cpus": num_workers or count_cores(), "include_dashboard": False}
            options |= {"object_store_memory": STORE_BYTES}
            beginning.enter_context(kept_here(stack.enter_context(local_folder())))
        else:
            _refuse_silence(address)
        stack.callback(ray.shutdown)
        try:
            ray.init(address, **options)
        except Exception as error:
            got = in_one_line(error)
            raise WorkerError(expected(f"a Ray cluster at {address}", got, advice)) from error
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, own_handler)
        beginning.close()
        yield


def _refuse_silence(address: str) -> None:
    """Refuse an address that Ray would try for two minutes."""
    if address == "auto" or os.environ.get("RAY_USE_TLS"):
        return  # Ray looks for one on this machine, and reports at once if there is none
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(expected("--ray-address auto or HOST:PORT", address, "see --help"))
    advice = "start one with 'ray start --head', or leave --ray-address out"
    with (
        refusing(f"a Ray cluster at {address}", advice, ConfigError),
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT) as end,
    ):
        if not end.recv(1):  # Ray speaks first
            raise OSError("a connection that was closed")


@contextlib.contextmanager
def local_folder() -> Iterator[Path]:
    """Make a folder for the files of our own Ray; remove it afterwards, and those left behind."""
    above = Path(tempfile.gettempdir())
    if len(str(above)) > 20:  # a socket's path holds 107 characters, and Ray adds 70
        above = Path("/tmp")
    for left in above.glob(f"{_FOLDER}-*-*"):
        if not Path("/proc", left.name.split("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    prefix = f"{_FOLDER}-{os.getpid()}-"
    with tempfile.TemporaryDirectory(
        prefix=prefix, dir=above, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


@contextlib.contextmanager
def kept_here(folder: Path) -> Iterator[None]:
    """While inside, a Ray that starts keeps its files in `folder` and uses no outside network.

    Its process for usage statistics starts even if these are switched off, and then asks the
    network which cloud it is in. A proxy that does not exist keeps its requests on this machine.
    """
    # The secret of our own processes would otherwise be written to the home folder. It stays.
    os.environ.setdefault("RAY_AUTH_TOKEN", os.urandom(32).hex())
    settings = {
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
        # If the driver is killed during the start, its helpers look this long for their Ray.
        "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
        # A process that we end has nothing to save: if it does not answer Ray, it is killed after
        # this time, not after 5 s.
        "RAY_kill_worker_timeout_milliseconds": "1000",
        # What a call takes and gives travels in the call up to this size, which takes half the time
        # of the way through the object store.
        "RAY_max_direct_call_object_size": str(2**20),
        "no_proxy": "localhost,127.0.0.1",
        **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    }
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:  # what Ray itself has set meanwhile stays: its next cluster needs it
        for name in settings:
            os.environ.pop(name)
        os.environ.update(before)


def require_versions(versions: dict[str, str]) -> None:
    """In a process of Ray: raise a `WorkerError` if its versions are not the driver's."""
    here = collect_versions()
    if other := [name for name in versions if here.get(name) != versions[name]]:
        wanted, got = (
            ", ".join(f"{name} {each.get(name)}" for name in other) for each in (versions, here)
        )
        advice = f"install the same versions on {socket.gethostname()}, then resume"
        raise WorkerError(expected(f"{wanted} on every node", got, advice))


def in_one_line(error: BaseException) -> str:
    """Ray's message, without its pages of advice."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"
