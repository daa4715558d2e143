"""Compiling kernels once, and caching them for the next process if possible.

The folder's name contains a hash of all sources that a kernel is compiled from: its module and what
that imports from this package, at any depth. So kernels may call parts and use constants of other
files; an edit of any of them compiles the kernel again. Numba itself notices only changes to a
kernel's own file. Numba loads its files unchecked, so their
checksums are kept beside them (`atari.machine.cache`), and damaged ones are deleted before a
process loads its first kernel.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.extending import register_jitable

from pixelpong.atari.machine.cache import (
    cache_folder,
    drop_unsealed,
    is_trusted,
    make_folder,
    seal_files,
)
from pixelpong.errors import ConfigError
from pixelpong.notices import begin, end, note

_PACKAGE = Path(__file__).parents[2]


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with `numba.njit` on the first call, without the GIL and with numba's cache.

    If no folder can be used, as in some containers or on a full disk, each process compiles the
    kernels again.

    Raises:
        ConfigError: numba's compiler is switched off.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # by debuggers, for coverage
        where = "NUMBA_DISABLE_JIT is set"
        if "NUMBA_DISABLE_JIT" not in os.environ:  # which would override the file
            where = "disable_jit is set in numba's configuration, such as .numba_config.yaml"
        raise ConfigError(f"{where}, but pixelpong needs the compiler. Unset it.")

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel: Any = None
        folder: Path | None = None
        num_known = 0  # signatures that were loaded, or compiled and sealed

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            nonlocal kernel, folder, num_known
            if kernel is None:
                with _opening:
                    if kernel is None:  # no other thread has made it meanwhile
                        folder = _find_folder(_hash_sources(function))
                        kernel = _decorate(function, folder, options)
            try:
                return kernel(*args)
            except Exception as error:
                is_compiled = tuple(map(numba.typeof, args)) in kernel.signatures
                if is_compiled and not isinstance(error, OSError):  # from writing the cache
                    raise
                if not is_compiled:  # perhaps the cache is to blame
                    kernel, folder = _decorate(function, None, options), None
                return kernel(*args)
            finally:
                if (count := len(kernel.signatures)) != num_known:
                    if folder is not None and kernel.stats.cache_misses:
                        seal_files(folder, _list_files(folder))
                    num_known = count

        def find_entry(*args: Any) -> Any:
            """Return the machine code for these types, or None if it is not compiled."""
            with contextlib.suppress(KeyError):
                return kernel.get_overload(tuple(map(numba.typeof, args)))
            return None

        call.find_entry = find_entry  # type: ignore[attr-defined]
        return call

    return compile_it


# A kernel, and a part of kernels, which is compiled with its callers. With NumPy's error model,
# divisions need no check for zero and can be vectorised.
kernel = compiled(error_model="numpy")
kernel_part: Any = register_jitable(error_model="numpy")


class Entry:
    """A kernel for calls with arguments of the same types each time; the first call finds them.

    To find the types of some forty arrays takes a fifth of a step of one game.
    """

    def __init__(self, kernel: Any) -> None:
        """Make it for a function that `compiled` has returned."""
        self._kernel, self._entry = kernel, None

    def __call__(self, *args: Any) -> Any:
        """Call the kernel. Arguments of other types than at the first call are undefined."""
        if self._entry is not None:
            return self._entry(*args)
        result = self._kernel(*args)
        self._entry = self._kernel.find_entry(*args)
        return result


# Held by one thread at a time, because numba's settings belong to the process.
_opening = threading.Lock()


def _decorate(function: Callable[..., Any], folder: Path | None, options: dict[str, Any]) -> Any:
    """Make numba's kernel, with its cache in the folder if there is one."""
    kernel: Any = None
    if folder is not None:
        # Numba raises an error if it cannot use the folder.
        with _caching_in(folder), contextlib.suppress(RuntimeError):
            kernel = numba.njit(function, cache=True, nogil=True, **options)
    kernel = kernel or numba.njit(function, nogil=True, **options)
    _kernels.add(kernel)
    return kernel


def _find_folder(sources: str) -> Path | None:
    """Find a writable folder for code compiled from these sources, and delete damaged files in it.

    It is inside the folder that the user gave to numba, or else in our cache folder or next to
    the package. None if no folder is writable and trusted.
    """
    given = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    for parent in (given and Path(given), cache_folder(), _PACKAGE / "__pycache__"):
        if not parent or not is_trusted(parent):
            continue
        folder: Path = parent / f"kernels-{sources}"
        with contextlib.suppress(OSError):
            make_folder(folder)
            if os.access(folder, os.W_OK) and is_trusted(folder):
                _drop_damaged(folder)
                return folder
    return None


@functools.cache
def _drop_damaged(folder: Path) -> None:
    """Delete damaged files, once per process; all its kernels are then compiled or intact."""
    drop_unsealed(folder, _list_files(folder))


def _list_files(folder: Path) -> list[Path]:
    """List the files that numba has written to a folder."""
    return sorted(folder.rglob("*.nb[ci]"))


_kernels: weakref.WeakSet[Any] = weakref.WeakSet()


LINE = "Compiling the kernels for this processor, once …"


class _Announcement(event.Listener):
    """Notes that kernels are being compiled; on a terminal only once per process."""

    def on_start(self, started: event.Event) -> None:
        """Numba starts to compile a function, which may belong to another program."""
        if started.data["dispatcher"] in _kernels:
            begin(LINE, _announce)

    def on_end(self, ended: event.Event) -> None:
        """Numba has compiled the function, or failed to."""
        if ended.data["dispatcher"] in _kernels:
            end(LINE)


@functools.cache
def _announce(line: str) -> None:
    note(line)


event.register("numba:compile", _Announcement())


@contextlib.contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    """Have numba cache the functions that are decorated in this context in the folder.

    That takes two settings: users can also choose the classes that find a folder.
    """
    ours = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    before = {name: getattr(numba.config, name) for name in ours}
    for name, value in ours.items():
        setattr(numba.config, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(numba.config, name, value)


def _hash_sources(function: Callable[..., Any]) -> str:
    """Hash what compiled code depends on besides the processor, which numba's index names."""
    parts = (cell.cell_contents for cell in function.__closure__ or ())
    files = {Path(each.__code__.co_filename) for each in (function, *parts) if callable(each)}
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    for path in _follow_imports(frozenset(files)):
        digest.update(_read_source(path))
    return digest.hexdigest()[:16]


@functools.cache
def _follow_imports(files: frozenset[Path]) -> list[Path]:
    """List these files and all files of this package that they import, at any depth."""
    reached: set[Path] = set()
    left = set(files)
    while left:
        path = left.pop()
        reached.add(path)
        left |= _list_imports(path) - reached
    return sorted(reached)


_IMPORT = re.compile(rb"^ *from ([\w.]+) import (\([^)]*\)|.*)$", re.M)


@functools.cache
def _list_imports(path: Path) -> frozenset[Path]:
    """List the files of this package from which a file imports something."""
    modules, imported = _list_modules(), set()
    for module, names in _IMPORT.findall(_read_source(path)):
        whole = [module, *(module + b"." + name for name in re.findall(rb"\w+", names))]
        imported |= {modules[name] for name in whole if name in modules}
    return frozenset(imported)


@functools.cache
def _list_modules() -> dict[bytes, Path]:
    """Map the names of this package's modules to their files."""
    above = _PACKAGE.parent
    files = {path.relative_to(above).with_suffix("").parts: path for path in _PACKAGE.rglob("*.py")}
    names = {".".join(parts).removesuffix(".__init__"): path for parts, path in files.items()}
    return {name.encode(): path for name, path in names.items()}


@functools.cache
def _read_source(path: Path) -> bytes:
    with contextlib.suppress(OSError):  # a package may come without its sources
        return path.read_bytes()
    return b""
