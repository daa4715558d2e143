"""Compiling LLVM IR to functions, and caching the machine code for the next process.

LLVM comes with numba, as llvmlite, so the user needs no compiler. The code is specific to the
processor. It is kept in the user's cache folder, under a name derived from all it depends on, after
a checksum; damaged code is compiled again. A cache that cannot be written costs only time. Two
processes that compile at the same moment write the same bytes, each to a temporary file that it
then renames.

Neither compiling nor calling holds Python's lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

# LLVM's optimization levels for the IR and for the machine code. A higher level costs more time at
# the first use than it gains: docs/log.md.
LEVEL, CODE_LEVEL = 1, 2

# One thread at a time: the second one then finds the code in the cache, LLVM's linking is not
# thread-safe, and neither is CPython 3.11's parser ("AST constructor recursion depth mismatch").
_making = threading.Lock()


class NativeCode:
    """Functions in machine code; their addresses are valid as long as this object lives."""

    def __init__(
        self,
        key: bytes,
        make_ir: Callable[[], str],
        folder: Path | None = None,
        others: Sequence[tuple[bytes, Callable[[], str]]] = (),
        *,
        is_quick: bool = False,
    ) -> None:
        """Take the machine code from the cache, or compile it.

        `key` identifies everything the IR depends on. `others` are keys and IR of what is linked to
        it. With `is_quick` only the passes run that pay for code that is run once in a frame.
        """
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        triple = llvm.get_process_triple()
        processor = llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_triple(triple).create_target_machine(
            cpu=processor, features=features, opt=CODE_LEVEL, jit=True
        )
        folder = folder or cache_folder()
        self.was_kept = True
        with _making:
            codes = []
            for each, make, quick in (
                (key, make_ir, is_quick),
                *((*other, False) for other in others),
            ):
                parts = (each.hex(), llvmlite.__version__, triple, processor, features, str(LEVEL))
                name = hashlib.sha256("\n".join((*parts, "quick" * quick)).encode()).hexdigest()[
                    :40
                ]
                path = folder and folder / f"{name}.machine"
                code = path and _read(path)
                if code is None:
                    self.was_kept = False
                    code = _compile(make(), triple, target, is_quick=quick)
                    if path is not None:
                        _keep(path, code)
                codes.append(code)
            empty = llvm.parse_assembly("")
            empty.triple = triple
            self._engine = llvm.create_mcjit_compiler(empty, target)
            for code in codes:
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of an exported function."""
        found: int = self._engine.get_function_address(name)
        assert found, name
        return found

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        """An exported function for Python to call; other threads can run during a call."""
        function = ctypes.CFUNCTYPE(result, *arguments)(self.address(name))
        function.code = self  # type: ignore[attr-defined]  # keeps the code alive
        return function


def _compile(ir: str, triple: str, target: Any, *, is_quick: bool = False) -> bytes:
    """Compile a module to machine code, as an object file."""
    module = llvm.parse_assembly(ir)
    module.triple, module.data_layout = triple, str(target.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(LEVEL)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(target, tuning)
    passes = _quick_passes() if is_quick else builder.getModulePassManager()
    passes.run(module, llvm.create_pass_builder(target, tuning))
    code: bytes = target.emit_object(module)
    return code


def _quick_passes() -> Any:
    """The passes without which code is slow; they take a fifth of the time that LEVEL 1 takes."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_sccp_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_store_elimination_pass()
    return passes


def cache_folder() -> Path | None:
    """The folder for machine code: PIXELPONG_CACHE_DIR, or the user's cache folder.

    None if the user has no home: code from a folder that others can write to must not be run.
    """
    folder = os.environ.get("PIXELPONG_CACHE_DIR")
    try:
        return Path(folder).expanduser() if folder else _users_cache() / "pixelpong"
    except RuntimeError:  # there is no home
        return None


def _users_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _read(path: Path) -> bytes | None:
    """Read cached machine code; None if there is none, it is damaged, or no regular file."""
    try:
        if not path.is_file():  # a named pipe would be waited for
            return None
        content = path.read_bytes()
    except OSError:
        return None
    code = content[32:]
    return code if code and _seal(path, code) == content[:32] else None


def _seal(path: Path, code: bytes) -> bytes:
    """The checksum in front of the code; it includes the name, so other code does not pass."""
    return hashlib.sha256(path.name.encode() + code).digest()


def _keep(path: Path, code: bytes) -> None:
    """Write the code completely or not at all; do nothing if it cannot be written."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_seal(path, code) + code)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
