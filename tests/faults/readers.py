"""Every reader of the package, as something that is given bytes: for hypothesis and for atheris.

A reader lays the bytes where a user's file would be and reads it as the commands do, through to
what is done with it next: a checkpoint into a learner whose items are played, an agent into a game.
Where hashes stand over a file they are made to fit, as a forger would.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from hostile import ODD_VALUES, altered, as_text, broken, inputs
from hypothesis import strategies as st
from safetensors.numpy import load, save

from pixelpong.agent.choice import load_agent
from pixelpong.agent.file import load_milestone
from pixelpong.agent.network import fit_params
from pixelpong.config import Config
from pixelpong.config.presets import load_preset, resolve_config
from pixelpong.config.protocols import find_protocol
from pixelpong.env import make_emulator
from pixelpong.faces.games.game import Game
from pixelpong.faces.games.socket import read_message
from pixelpong.faces.page.library import View
from pixelpong.faces.page.live import encode_json
from pixelpong.loop import train
from pixelpong.play.replay import Replay
from pixelpong.play.worker import make_worker
from pixelpong.run.checkpoints import CheckpointStore, _hash_of_manifest
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile
from pixelpong.run.milestones import MilestoneStore
from pixelpong.run.tail import Table, Tail, read_end
from pixelpong.seeding import make_rng
from pixelpong.session import Session

TOY = {
    "environment": "Catch-v0", "hidden": 2, "batch_size": 2, "streams": 2, "horizon": 40,
    "minibatches": 1, "epochs": 1, "updates": 2, "save_every": 1, "engine": "serial",
    "milestone_every": 1, "replay_every": 1, "evaluate_every": 2, "evaluate_episodes": 2,
}  # fmt: skip
"""A training of a moment that leaves a file of every kind."""


@dataclass(frozen=True)
class Reader:
    """One reader.

    Attributes:
        valid: a file as the package writes it.
        inputs: what hypothesis gives it.
        read: reads such a file, as bytes; raises only declared errors.
    """

    valid: bytes
    inputs: st.SearchStrategy[bytes]
    read: Callable[[bytes], Any]


def make_readers(folder: Path) -> Mapping[str, Reader]:
    """All of them, working in an empty folder."""
    runs = {name: make_trained(folder / name, name) for name in ("classic", "fast")}
    classic = runs["classic"]
    return {
        **{f"checkpoint {name}": file_reader(classic, name) for name in FILES},
        **{f"counters {name}": counters_reader(run) for name, run in runs.items()},
        **{f"arrays {name}": arrays_reader(run) for name, run in runs.items()},
        **{f"params {name}": params_reader(run) for name, run in runs.items()},
        **{f"agent {name}": agent_reader(run) for name, run in runs.items()},
        **{f"lines {name}": lines_reader(folder / f"{name}.jsonl", line)
           for name, line in lines_of(classic).items()},
        **{f"page {name}": page_reader(classic, name) for name in LINES},
        "replay": replay_reader(classic),
        "config.json": config_reader(classic),
        "toml": toml_reader(folder / "mine.toml"),
        "message": message_reader(),
        "snapshot Catch-v0": snapshot_reader("Catch-v0"),
        "snapshot ALE/Pong-v5": snapshot_reader("ALE/Pong-v5"),
    }  # fmt: skip


FILES = ("params.safetensors", "state.safetensors", "state.json", "manifest.json")
LINES = ("metrics", "evaluations", "replays", "config")


def make_trained(path: Path, preset: str, **changes: Any) -> RunDirectory:
    """A run that has been trained for a moment."""
    config = load_preset(preset).updated(TOY | changes, "test")
    run = RunDirectory.create(path, config, _ignore)
    train(run)
    return run


def _ignore(message: str) -> None:
    """Warnings are not what is tested here."""


# --- checkpoints ------------------------------------------------------------------------------


def seal(folder: Path) -> None:
    """Make the hashes of a checkpoint fit its files, as far as its manifest allows."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for name, entry in manifest["files"].items():
        content = (folder / name).read_bytes()
        entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    path.write_bytes(sealed(manifest))


def sealed(manifest: dict[str, Any]) -> bytes:
    """A manifest with the hash that fits it, where one can be made."""
    rest = {name: value for name, value in manifest.items() if name != "manifest_sha256"}
    try:
        rest = json.loads(as_text(rest))
        return json.dumps(rest | {"manifest_sha256": _hash_of_manifest(rest)}).encode()
    except (ValueError, RecursionError):
        return as_text(manifest)


class Forged:
    """The newest checkpoint of a run, of which one file is replaced and the hashes made to fit."""

    def __init__(self, run: RunDirectory, name: str) -> None:
        update = run.checkpoints.updates()[-1]
        self.folder, self.update = run.checkpoints.path(update), update
        self.path = self.folder / name
        self._content = {each: (self.folder / each).read_bytes() for each in FILES}
        self.valid = self._content[name]

    def put(self, content: bytes) -> None:
        """Replace the file; all others are as they were."""
        for each, whole in self._content.items():
            (self.folder / each).write_bytes(whole)
        self.path.write_bytes(content)
        if self.path.name != "manifest.json":
            seal(self.folder)

    def restore(self) -> None:
        """Put everything back."""
        for each, whole in self._content.items():
            (self.folder / each).write_bytes(whole)


def file_reader(run: RunDirectory, name: str) -> Reader:
    """One file of a checkpoint, read alone, and by those who look for the newest and the best."""
    forged = Forged(run, name)

    def read(content: bytes) -> None:
        store = CheckpointStore(run.checkpoints.folder, _ignore)
        forged.put(content)
        try:
            store.load_latest()
            store.load_best()
            store.load(forged.update)
        finally:
            forged.restore()

    some = st.binary(max_size=200) | broken(forged.valid)
    if name == "manifest.json":
        some |= altered(json.loads(forged.valid)).map(sealed)
    elif name == "state.json":
        some |= altered(json.loads(forged.valid)).map(as_text)
    else:
        some |= tensors(forged.valid)
    return Reader(forged.valid, some, read)


@st.composite
def tensors(draw: st.DrawFn, valid: bytes) -> bytes:
    """A file of arrays: its header altered, or arrays of other types, shapes and numbers in it."""
    if draw(st.booleans()):
        size = int.from_bytes(valid[:8], "little")
        header = as_text(draw(altered(json.loads(valid[8 : 8 + size]))))
        length = draw(st.sampled_from([len(header)] * 6 + [0, 2**63, 2**31, len(header) - 1]))
        return length.to_bytes(8, "little") + header + valid[8 + size :]
    arrays = load(valid)
    name = draw(st.sampled_from(sorted(arrays)))
    how = draw(st.sampled_from(["type", "shape", "number", "drop", "add", "empty"]))
    if how == "type":
        kind = draw(st.sampled_from(["f2", "f8", "i1", "i8", "u2", "?", "u8"]))
        with np.errstate(all="ignore"):
            arrays[name] = arrays[name].astype(kind)
    elif how == "shape":
        flat = arrays[name].reshape(-1)
        arrays[name] = flat[: draw(st.integers(0, flat.size))]
    elif how == "number" and arrays[name].dtype.kind == "f" and arrays[name].size:
        place = draw(st.integers(0, arrays[name].size - 1))
        arrays[name] = arrays[name].copy()
        odd = draw(st.sampled_from([np.nan, np.inf, -np.inf, 3e38, -3e38]))
        with np.errstate(over="ignore"):
            arrays[name].reshape(-1)[place] = odd
    elif how == "number" and arrays[name].size:
        arrays[name] = arrays[name] + arrays[name].dtype.type(1)
    elif how == "drop":
        del arrays[name]
    elif how == "empty":
        arrays[name] = arrays[name].reshape(-1)[:0]
    else:
        arrays[draw(st.text(max_size=5))] = np.zeros(draw(st.integers(0, 3)), np.float32)
    return save({each: np.ascontiguousarray(w) for each, w in arrays.items()})


def _go_on(run: RunDirectory, forged: Forged, content: bytes) -> None:
    """Resume from a checkpoint, and play what comes next."""
    forged.put(content)
    try:
        session = Session(RunDirectory.open(run.path, _ignore), 0.0)
        worker = make_worker(run.config)
        item = session.learner.items()[0]
        result = worker.play(item, session.learner.params)
        assert result is not None
    finally:
        forged.restore()


def counters_reader(run: RunDirectory) -> Reader:
    """The counters of a checkpoint that a training goes on from, and an agent's."""
    forged = Forged(run, "state.json")

    def read(content: bytes) -> None:
        _go_on(run, forged, content)
        forged.put(content)
        try:
            load_agent(run, "latest").make_network()
        finally:
            forged.restore()

    return Reader(forged.valid, altered(json.loads(forged.valid)).map(as_text), read)


def arrays_reader(run: RunDirectory) -> Reader:
    """The optimizer's memory and the streams that a training goes on from."""
    forged = Forged(run, "state.safetensors")
    return Reader(forged.valid, tensors(forged.valid), lambda content: _go_on(run, forged, content))


def params_reader(run: RunDirectory) -> Reader:
    """The parameters that a training goes on from, and that an evaluation plays with."""
    forged = Forged(run, "params.safetensors")

    def read(content: bytes) -> None:
        forged.put(content)
        try:
            checkpoint = run.checkpoints.load_latest()
            fit_params(checkpoint.params, run.config.learning.algorithm)
        finally:
            forged.restore()
        _go_on(run, forged, content)

    return Reader(forged.valid, tensors(forged.valid), read)


def agent_reader(run: RunDirectory) -> Reader:
    """A small agent's file, and a game that it plays."""
    path = run.milestones.path(run.milestones.updates()[-1])
    arrays = load(path.read_bytes())
    del arrays["sha256"]  # of before there was one: a forger need not make it fit
    valid, store = save(arrays), MilestoneStore(path.parent / "read")
    store.folder.mkdir()
    store.save(1, valid)

    def read(content: bytes) -> None:
        store.path(1).write_bytes(content)
        game = Game(load_milestone(store, 1), "watch", make_rng(0, "play"))
        for _ in range(5):
            game.tick()
        encoded = json.dumps(game.describe(), allow_nan=False)
        assert len(encoded) < 1000

    @st.composite
    def other_cards(draw: st.DrawFn) -> bytes:
        arrays = load(valid)
        card = as_text(draw(altered(json.loads(arrays["card"].tobytes()))))
        return save(arrays | {"card": np.frombuffer(card, np.uint8)})

    return Reader(valid, st.binary(max_size=200) | broken(valid) | tensors(valid) | other_cards(),
                  read)  # fmt: skip


# --- lines ------------------------------------------------------------------------------------


def lines_of(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """The last line of each of a run's files, without its checksum."""
    lines = {file.path.stem: list(file.read())[-1] for file in run.line_files}
    return {name: _without_hash(line) for name, line in lines.items()}


def _without_hash(content: dict[str, Any]) -> dict[str, Any]:
    """As it was before there was a hash: so a forger need not make one fit."""
    return {name: value for name, value in content.items() if name not in ("crc32", "sha256")}


def lines_reader(path: Path, line: dict[str, Any]) -> Reader:
    """A file of lines: as the training reads it, and as the page does."""

    def read(content: bytes) -> None:
        path.write_bytes(content)
        file, tail, table = LineFile(path), Tail(path), Table()
        whole = list(file.read())
        _, lines = tail.read()
        assert lines == whole or "NaN" in content.decode("latin-1")
        for each in lines:
            table.add(each)
        encode_json(table.columns(every=True))
        read_end(path)
        file.cut_back(1)
        kept = list(file.read())  # a number that rotted stays, for the sake of what is behind it
        assert not kept or kept[-1]["update"] <= 1
        early = [[each for each in some if each["update"] <= 1] for some in (kept, whole)]
        assert early[0] == early[1] or "NaN" in content.decode("latin-1")
        tail.read()

    return Reader(as_text(line) + b"\n", _lines(line), read)


@st.composite
def _lines(draw: st.DrawFn, line: dict[str, Any]) -> bytes:
    """Some lines, the last perhaps without its end."""
    count = draw(st.integers(1, 4))
    texts = [draw(inputs(line)) for _ in range(count)]
    return b"\n".join([as_text(line), *texts]) + draw(st.sampled_from([b"", b"\n"]))


def page_reader(run: RunDirectory, name: str) -> Reader:
    """A run as the page shows it, with one of its files replaced."""
    path = run.path / (f"{name}.jsonl" if name != "config" else "config.json")
    valid = path.read_bytes()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        try:
            view = View(run.path)
            view.refresh()
            told = [view.tell_all(), view.glance(), view.columns(0), view.agents()]
            for each in told:
                json.loads(encode_json(each), parse_constant=_refuse_constant)
        finally:
            path.write_bytes(valid)

    config = _without_hash(json.loads((run.path / "config.json").read_text()))
    some = inputs(config) if name == "config" else _lines(lines_of(run)[name])
    return Reader(valid, some, read)


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def replay_reader(run: RunDirectory) -> Reader:
    """A replay's line, and the first moments of the episode."""
    line = lines_of(run)["replays"]

    def read(content: bytes) -> Any:
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            return None
        replay = Replay.from_line(found)
        for _, _moment in zip(range(20), replay.watch(), strict=False):
            pass
        assert Replay.from_line(replay.to_line()).to_line() == replay.to_line()
        return replay

    return Reader(as_text(line), inputs(line), read)


# --- configuration ----------------------------------------------------------------------------


def config_reader(run: RunDirectory) -> Reader:
    """A run's configuration: opened, compared with this machine, written anew."""
    path = run.path / "config.json"
    valid = path.read_bytes()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        try:
            opened = RunDirectory.open(run.path, _check_line)
            opened.warn_of_other_machine()
            assert Config().updated(opened.config.to_flat(), "again") == opened.config
            changed = opened.config.updated({"verbose": True, "discount": 0.5}, "test")
            opened.with_config(changed).write_config(1)
            RunDirectory.open(run.path, _check_line)
        finally:
            path.write_bytes(valid)

    return Reader(valid, inputs(_without_hash(json.loads(valid))), read)


def _check_line(message: str) -> None:
    assert "\n" not in message


def toml_reader(path: Path) -> Reader:
    """A file of options."""
    valid = b'preset = "classic"\nhidden = 10\nlearning_rate = 1e-3\nverbose = true\nupdates = 3\n'

    def read(content: bytes) -> Config:
        path.write_bytes(content)
        config = resolve_config(None, path, {})
        json.dumps(config.to_flat(), allow_nan=False)
        assert config.updated(config.to_flat(), "again") == config
        return config

    return Reader(valid, st.binary(max_size=200) | broken(valid) | _options(), read)


@st.composite
def _options(draw: st.DrawFn) -> bytes:
    """Lines of options, with any value that TOML has."""
    names = st.sampled_from([*Config().to_flat(), "hiden", "a.b", '""', "[hidden]", "[[a]]"])
    spelled = ODD_VALUES.map(lambda value: as_text(value).replace(b"null", b"1979-05-27"))
    values = spelled | st.sampled_from(
        [b"0x" + b"f" * 5000, b"0o17", b"inf", b"-nan", b"'''\n'''", b"{a=1}", b"1979-05-27",
         b"07:32:00", b"[" * 2000, b"1e400", b"0b1"]
    )  # fmt: skip
    lines = draw(st.lists(st.tuples(names, values), max_size=4))
    return b"".join(name.encode() + b" = " + value + b"\n" for name, value in lines)


# --- the game ---------------------------------------------------------------------------------


def message_reader() -> Reader:
    """What a browser says to the game; a `ValueError` closes its socket with a line."""
    kinds = ("move", "aim", "serve", "pause", "restart", "speed", "agent", "seen")
    valid = {"type": "aim", "value": 0.5}

    def read(content: bytes) -> Any:
        try:
            kind, value = read_message(content.decode("utf-8", "surrogateescape"))
        except ValueError:
            return None
        assert kind in kinds
        return kind, value

    messages = st.fixed_dictionaries(
        {"type": st.sampled_from(kinds) | ODD_VALUES},
        optional={"value": ODD_VALUES, "more": ODD_VALUES},
    )
    return Reader(as_text(valid), inputs(valid) | messages.map(as_text), read)


def snapshot_reader(name: str) -> Reader:
    """An emulator's snapshot, played on from.

    The checksum of the real one's is made to fit: it is there against damage, not against forgers.
    """
    emulator = make_emulator(replace(find_protocol(name), max_frames=2000))
    for _ in range(30):
        emulator.step(2, [0.5] * 6)
    valid = emulator.get_state()

    def read(content: bytes) -> None:
        emulator.set_state(content)
        for action in (0, 2, 3, 2):
            emulator.step(action, [0.5] * 6)
        emulator.frame()
        emulator.get_state()

    some = st.binary(max_size=200) | broken(valid)
    return Reader(valid, some, read)
