"""A cartridge in native code, for any number of machines: compiled on first use, then cached."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import build
from pixelpong.atari.machine.cache import cache_folder
from pixelpong.atari.machine.cartridge import Cartridge, Flavour
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.disassembly import Spot
from pixelpong.atari.machine.exploring import Notes, explore
from pixelpong.atari.machine.native import NativeCode, Source
from pixelpong.atari.machine.record import FRAME_DONE, NOT_CHOSEN, NOT_IMPLEMENTED, TOO_OLD
from pixelpong.atari.machine.roms import read_rom
from pixelpong.errors import EmulatorError
from pixelpong.notices import slow_work

_REASONS = {
    NOT_IMPLEMENTED: "the game used an instruction that is not covered",
    TOO_OLD: "its picture shows parts of too many older frames",
    NOT_CHOSEN: "no press chose the right game of the cartridge",
}


def not_covered(stop: int) -> EmulatorError:
    """Make the error for a machine that stopped with a code other than FRAME_DONE."""
    return EmulatorError(f"The emulated game failed: {_REASONS[stop]}; start it again.")


class Game:
    """A compiled cartridge. Its functions release the GIL.

    Attributes:
        address: address of ``play_frames`` (`atari.machine.playing`), for other compiled code:
            ``void play_frames(machine *, const uint8 *actions, int32 count, int32 draws)``.
        start_address: address of ``start_game`` (`atari.machine.resetting`), which plays the
            start of a game: ``void start_game(machine *)``.
        was_kept: whether the machine code came from the cache.
    """

    def __init__(
        self,
        cartridge: Cartridge,
        rom: bytes,
        folder: Path | None = None,
        *,
        is_plain: bool = False,
        is_translated: bool = True,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Compile a cartridge, or take its code from the cache.

        Args:
            cartridge: its facts.
            rom: its content.
            folder: for the code; by default the user's cache folder.
            is_plain: whether to leave out its hints.
            is_translated: whether to translate its code; interpreting it compiles sooner and plays
                slower.
            tell: called with one line before compiling, which takes seconds.
        """
        self.cartridge, self._rom = cartridge, rom
        self._banked, self._folder = cartridge.banked(rom), folder or cache_folder()
        self._tell, self.was_kept = tell, True
        self.keep_notes: Callable[[], Any] = lambda: None
        try:
            with contextlib.ExitStack() as self._work:
                if cartridge.hints:
                    self._code = self._compile(is_plain)
                else:
                    self._code = self._link() if is_translated else self._load_plain()
        except (RuntimeError, OSError) as error:
            advice = "use a machine that numba supports"
            raise EmulatorError(f"LLVM cannot compile the game: {error}; {advice}") from error
        self.address = self._code.address("play_frames")
        self.start_address = self._code.address("start_game")
        number, pointer = ctypes.c_int32, ctypes.c_void_p
        self.play_frames = self._code.function(
            "play_frames", None, pointer, pointer, number, number
        )
        self._idle = self._code.function("idle", None, pointer, number, number)
        # Plays the start of a game, from a machine that was just reset.
        self.play_start = self._code.function("start_game", None, pointer)
        # Plays frames with the inputs as they are: ``play_on(machine's address, count) -> stop``.
        self.play_on = self._code.function("play", number, pointer, number)

    def _compile(self, is_plain: bool) -> NativeCode:
        """Compile the cartridge and the console as one program."""
        cartridge, banked = self.cartridge, self._banked

        def make_ir() -> str:
            entries = cartridge.spots(banked)
            return build.make_program(cartridge, banked, entries, with_hints=not is_plain).to_ir()

        return self._load(Source(self._key(f"whole {is_plain}"), make_ir))

    def _link(self) -> NativeCode:
        """Compile the cartridge's program and link it to the console's."""
        notes = Notes(self._banked, self._key("notes"), self._folder)
        if notes.read():
            spots = notes.spots
        else:
            code = self._load_plain()
            spots = frozenset(explore(code, self.power_on, len(self._rom)))
            notes.write(spots)
        entries = sorted(spots)
        code = self._load(self._translated(entries), _console())
        # The notes are kept when the process ends, if not before.
        self.keep_notes = weakref.finalize(self, notes.keep, code, entries)
        return code

    def _load_plain(self) -> NativeCode:
        """Load the cartridge's program without a translation."""
        return self._load(self._translated(()), _console())

    def _translated(self, entries: Iterable[Spot]) -> Source:
        def make_ir() -> str:
            return build.make_game(self.cartridge, self._banked, entries).to_ir()

        return Source(self._key(f"linked {entries}"), make_ir)

    def _load(self, *sources: Source) -> NativeCode:
        return NativeCode(sources, self._folder, self._warn)

    def _warn(self) -> None:
        """Tell the user, once, that compiling takes a while."""
        if self.was_kept:
            line = f"Compiling {self.cartridge.name} for this processor, once …"
            self._work.enter_context(slow_work(line, self._tell))
        self.was_kept = False

    def _key(self, form: str) -> bytes:
        """Hash what the code depends on besides the processor and LLVM: ROM, form, sources."""
        cartridge = self.cartridge
        facts = sorted(cartridge.all_constants(self._banked).items())
        hints = (cartridge.entries, dict(cartridge.hints), cartridge.record.descr)
        rules = repr((cartridge.scoring, cartridge.select))
        modules = [Path(str(module.__file__)) for module in cartridge.modules]
        return _hash(self._rom, repr((form, facts, hints, rules)), *modules)

    def with_facts(self, *, is_translated: bool = True, **changes: Any) -> Game:
        """Compile the same cartridge with some facts changed."""
        facts = replace(self.cartridge, **changes)
        return Game(facts, self._rom, self._folder, is_translated=is_translated)

    def power_on(self, flavour: Flavour | None = None) -> NDArray[np.void]:
        """Make a machine that was just switched on, [1] of the cartridge's record."""
        return self.cartridge.power_on(self._rom, flavour)

    def play(self, machine: NDArray[np.void], actions: bytes, draws: int) -> None:
        """Play frames, one action byte each, and draw the last one; fewer if the game ends."""
        self.play_frames(machine.ctypes.data, actions, len(actions), draws)
        stop = int(machine["stop"][0])
        if stop != FRAME_DONE:
            raise not_covered(stop)

    def start_game(self, machine: NDArray[np.void]) -> None:
        """Run a freshly reset machine up to the start of a game, and draw the last frame."""
        self.play_start(machine.ctypes.data)
        stop = int(machine["stop"][0])
        if stop != FRAME_DONE:
            raise not_covered(stop)

    def idle(self, machine: NDArray[np.void], switches: int, count: int) -> None:
        """Play frames with switches held and nothing else pressed."""
        self._idle(machine.ctypes.data, switches, count)
        stop = int(machine["stop"][0])
        if stop != FRAME_DONE:
            raise not_covered(stop)


def load_game(name: str, tell: Callable[[str], None] = lambda line: None) -> Game:
    """Load a game from the cache, or compile it after passing a line to `tell`."""
    facts = cartridge(name)
    return Game(facts, read_rom(facts), tell=tell)


def _console() -> Source:
    """Return the source that all cartridges share: console and interpreter."""
    return Source(_hash(b"", "console"), lambda: build.make_console().to_ir())


def _hash(rom: bytes, form: str, *modules: Path) -> bytes:
    folder = Path(build.__file__).parent
    files = [*sorted(folder.glob("*.py")), *modules]
    sources = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(rom + sources + form.encode()).digest()
