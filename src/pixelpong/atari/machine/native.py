"""Compiles LLVM IR to functions, and caches the machine code for the next process.

LLVM comes with numba, as llvmlite, so the user needs no compiler. The code is specific to the
processor and is kept in the cache folder (`atari.machine.cache`). Compiling and calling
release the GIL.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from pixelpong.atari.machine.cache import cache_folder, keep, read_kept

# LLVM's optimization level for the machine code.
CODE_LEVEL = 2
# The passes over the IR without which code is slow. All passes of LLVM's level 1 take five times as
# long and make no cartridge faster.
PASSES = (
    "always_inliner",
    "sroa",
    "sccp",
    "simplify_cfg",
    "instruction_combine",
    "simplify_cfg",
    "dead_store_elimination",
)

# Held by one thread at a time. The second thread then finds the code in the cache. Besides, neither
# LLVM's linker nor CPython 3.11's parser is thread-safe ("AST constructor recursion depth
# mismatch").
_making = threading.Lock()


class Source(NamedTuple):
    """A module that is compiled if it is not in the cache."""

    key: bytes  # identifies everything that the IR depends on
    make_ir: Callable[[], str]
    # LLVM's level for the IR; at 0, only PASSES run. Array loops need more, cartridges do not.
    level: int = 0


class NativeCode:
    """Functions in machine code; their addresses are valid as long as this object lives.

    Attributes:
        was_kept: whether all code came from the cache.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        folder: Path | None = None,
        before_compiling: Callable[[], None] = lambda: None,
    ) -> None:
        """Load the machine code of modules from the cache or compile it, and link them."""
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        compiler = _Compiler()
        folder = folder or cache_folder()
        self.was_kept = True
        with _making:
            empty = llvm.parse_assembly("")
            empty.triple = compiler.triple
            self._engine = llvm.create_mcjit_compiler(empty, compiler.target)
            for source in sources:
                path = folder and folder / f"{compiler.name_of(source)}.machine"
                code = path and read_kept(path)
                if code is None:
                    self.was_kept = False
                    before_compiling()
                    code = compiler.compile(source)
                    if path is not None:
                        keep(path, code)
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of an exported function or table."""
        address: int = self._engine.get_global_value_address(name)
        assert address, name
        return address

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        """Return an exported function for Python, which releases the GIL during a call."""
        function = ctypes.CFUNCTYPE(result, *arguments)(self.address(name))
        function.code = self  # type: ignore[attr-defined]  # keeps the code alive
        return function


class _Compiler:
    """LLVM for this processor."""

    def __init__(self) -> None:
        self.triple = llvm.get_process_triple()
        self._processor = llvm.get_host_cpu_name()
        self._features = llvm.get_host_cpu_features().flatten()
        self.target = llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self._processor, features=self._features, opt=CODE_LEVEL, jit=True
        )

    def name_of(self, source: Source) -> str:
        """Derive a file name from everything that the machine code depends on."""
        parts = (source.key.hex(), llvmlite.__version__, self.triple, self._processor)
        text = "\n".join((*parts, self._features, f"{source.level} {CODE_LEVEL}", *PASSES))
        return hashlib.sha256(text.encode()).hexdigest()[:40]

    def compile(self, source: Source) -> bytes:
        """Compile a module to machine code, as an object file."""
        module = llvm.parse_assembly(source.make_ir())
        module.triple, module.data_layout = self.triple, str(self.target.target_data)
        module.verify()
        tuning = llvm.create_pipeline_tuning_options(source.level)
        tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
        builder = llvm.create_pass_builder(self.target, tuning)
        if source.level:
            passes = builder.getModulePassManager()
        else:
            passes = llvm.create_new_module_pass_manager()
            for name in PASSES:
                getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)
        code: bytes = self.target.emit_object(module)
        return code
