"""Every reader of the package, as something that is given bytes.

A reader puts the bytes where a user's file would be and reads it as the commands do, through to
what is done with it next: a checkpoint into a learner whose items are played, an agent into a game,
lines into the page. Where hashes stand over a file they are made to fit, as a forger would.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hostile import as_text, is_same
from hypothesis import strategies as st
from safetensors.numpy import load, save
from toys import toy_config

from pixelpong.agent.file import decode_agent
from pixelpong.config import Config
from pixelpong.config.presets import resolve_config
from pixelpong.config.protocols import find_protocol
from pixelpong.env import make_emulator
from pixelpong.faces.games.game import Game
from pixelpong.faces.games.socket import read_message
from pixelpong.faces.page.view import View
from pixelpong.loop import train
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import EpisodeLine, EvaluationLine
from pixelpong.run.table import read_episodes, read_evaluations, read_metrics
from pixelpong.run.tail import Tail
from pixelpong.schema import encode
from pixelpong.seeding import make_rng

FILES = ("params.safetensors", "state.safetensors", "state.json")

SMALL = {
    "hidden": 2, "batch_size": 2, "streams": 2, "horizon": 40, "minibatches": 1, "epochs": 1,
    "updates": 2, "milestone_every": 1, "evaluate_every": 2,
    "evaluate_episodes": 2,
}  # fmt: skip
"""A training of a moment that leaves a file of every kind."""


@dataclass(frozen=True)
class Reader:
    """One reader.

    Attributes:
        valid: a file as the package writes it.
        read: reads such a file; raises only declared errors. Gives what it has understood of the
            document, at the same places; None if it has left it out.
        document: what the file says, if that is JSON.
        seal: the document as the file, with hashes that fit.
        optional: names that may be missing: files from before there were such have none.
        inputs: other files than broken ones for hypothesis to make.
    """

    valid: bytes
    read: Callable[[bytes], Any]
    document: Any = None
    seal: Callable[[Any], bytes] = as_text
    optional: frozenset[str] = frozenset()
    inputs: st.SearchStrategy[bytes] = dataclasses.field(default_factory=st.nothing)

    def agrees(self, found: Any, given: Any) -> bool:
        """Whether what was understood is what the file says."""
        if isinstance(found, dict):
            return isinstance(given, dict) and all(
                self.agrees(value, given[name]) if name in given else name in self.optional
                for name, value in found.items()
            )
        if isinstance(found, list):
            pairs = zip(found, given, strict=False) if isinstance(given, list) else ()
            return len(found) == len(given) and all(self.agrees(*pair) for pair in pairs)
        return is_same(found, given)


def make_trained(path: Path, preset: str, **changes: Any) -> RunDirectory:
    """A run that has been trained for a moment."""
    run = RunDirectory.create(path, toy_config(preset, **SMALL | changes), _ignore)
    train(run)
    return run


def make_readers(folder: Path) -> Mapping[str, Reader]:
    """All of them, working in an empty folder."""
    runs = {name: make_trained(folder / name, name) for name in ("classic", "fast")}
    classic = runs["classic"]
    return {
        "config.json": config_reader(classic),
        "manifest.json": manifest_reader(classic),
        **{f"card {name}": agent_reader(run) for name, run in runs.items()},
        **{f"{name}.jsonl": lines_reader(classic, name, understand)
           for name, understand in UNDERSTAND.items()},
        "toml": toml_reader(folder / "mine.toml"),
        "message": message_reader(),
        "snapshot ALE/Pong-v5": snapshot_reader("ALE/Pong-v5"),
    }  # fmt: skip


def _ignore(message: str) -> None:
    """Warnings are not what is tested here."""


def _check_line(message: str) -> None:
    assert "\n" not in message


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value, allow_nan=False))


def look_at_page(run: RunDirectory) -> None:
    """Show a run as the page does: only JSON leaves it."""
    view = View(run.path)
    view.refresh()
    _plain([view.tell_all(), view.glance(), view.columns(0), view.agents()])


# --- the run's own files ----------------------------------------------------------------------


def config_reader(run: RunDirectory) -> Reader:
    """A run's configuration: opened, compared with this machine, written anew, shown."""
    path = run.path / "config.json"
    valid = path.read_bytes()
    document = json.loads(valid)
    del document["sha256"]  # of before there was one: a forger need not make it fit

    def read(content: bytes) -> Any:
        path.write_bytes(content)
        try:
            look_at_page(run)
            opened = RunDirectory.open(run.path, _check_line)
            opened.warn_of_other_machine()
            flat = opened.config.to_flat()
            assert Config().updated(flat, "again") == opened.config
            changed = opened.config.updated({"verbose": True, "discount": 0.5}, "test")
            opened.with_config(changed).write_config(1)
            RunDirectory.open(run.path, _check_line)
        finally:
            path.write_bytes(valid)
        return {"config": flat}

    return Reader(valid, read, document, optional=frozenset(document["config"]))


def _last_row(run: RunDirectory) -> Any:
    columns = read_metrics(run)
    if len(columns["update"]) < 2:
        return None
    row = {name: column[-1].item() for name, column in columns.items()}
    return {name: row[name] for name in ("update", "steps", "entropy") if row[name] == row[name]}


def _last_episode(run: RunDirectory) -> Any:
    read_episodes(run, read_metrics(run))
    return _last(map(dataclasses.asdict, run.episodes.read_as(EpisodeLine)))


def _last_evaluation(run: RunDirectory) -> Any:
    read_evaluations(run, read_metrics(run))
    return _last(map(dataclasses.asdict, run.evaluations.read_as(EvaluationLine)))


def _last(lines: Any) -> Any:
    """The second one, behind the valid one; None if it was left out."""
    found = list(lines)
    return _plain(found[-1]) if len(found) > 1 else None


UNDERSTAND: dict[str, Callable[[RunDirectory], Any]] = {
    "metrics": _last_row, "episodes": _last_episode, "evaluations": _last_evaluation,
}  # fmt: skip


def lines_reader(run: RunDirectory, name: str, understand: Callable[[RunDirectory], Any]) -> Reader:
    """A file of lines: as trainings read it, and plots, and the page."""
    file = {each.path.stem: each for each in run.line_files}[name]
    before, document = file.path.read_bytes(), list(file.read())[-1]
    valid = as_text(document) + b"\n"

    def read(content: bytes) -> Any:
        file.path.write_bytes(valid + content)
        try:
            look_at_page(run)
            lines = list(file.read())
            assert Tail(file.path).read()[1] == lines
            understood = understand(run)
            file.cut_back(1)  # a number that rotted stays, for the sake of what is behind it
            kept = list(file.read())
            assert [each for each in kept if each["update"] <= 1] == [
                each for each in lines if each["update"] <= 1
            ]
        finally:
            file.path.write_bytes(before)
        return understood

    optional = frozenset({"point_ends", "point_rewards", "entropy", "steps"})
    return Reader(valid, read, document, lambda it: as_text(it) + b"\n", optional)


# --- checkpoints ------------------------------------------------------------------------------


def sealed(manifest: Any) -> bytes:
    """A manifest with the hash that fits it, if one can be made."""
    rest = {name: value for name, value in manifest.items() if name != "manifest_sha256"}
    try:
        rest = json.loads(as_text(rest))
        sha256 = hashlib.sha256(encode(rest, indent=1) + b"\n").hexdigest()
        return json.dumps(rest | {"manifest_sha256": sha256}).encode()
    except (ValueError, RecursionError):
        return as_text(manifest)


class Forged:
    """The newest checkpoint of a run, of which files are replaced and the hashes made to fit."""

    def __init__(self, run: RunDirectory) -> None:
        self.update = run.checkpoints.updates()[-1]
        self.folder = run.checkpoints.path(self.update)
        self.content = {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def put(self, name: str, content: bytes) -> None:
        """Replace one file; all others are as they were."""
        self.restore()
        (self.folder / name).write_bytes(content)
        if name != "manifest.json":
            manifest = json.loads(self.content["manifest.json"])
            sha256 = hashlib.sha256(content).hexdigest()
            manifest["files"][name] = {"bytes": len(content), "sha256": sha256}
            (self.folder / "manifest.json").write_bytes(sealed(manifest))

    def restore(self) -> None:
        """Put everything back."""
        for name, content in self.content.items():
            (self.folder / name).write_bytes(content)


def manifest_reader(run: RunDirectory) -> Reader:
    """The manifest, read alone, and in looking for the newest and the best."""
    forged = Forged(run)
    store = CheckpointStore(run.checkpoints.folder, _check_line)
    document = json.loads(forged.content["manifest.json"])
    del document["manifest_sha256"]

    def read(content: bytes) -> Any:
        forged.put("manifest.json", content)
        try:
            assert store.load_latest().update in store.updates()
            assert store.load_best().update in store.updates()
            found = store.load(forged.update)
        finally:
            forged.restore()
        return {"update": found.update, "score": found.score, "score_of": found.score_of}

    return Reader(forged.content["manifest.json"], read, document, sealed)


@st.composite
def tensors(draw: st.DrawFn, valid: bytes) -> bytes:
    """Arrays of other types, shapes and numbers than the valid ones, or an odd table length."""
    if draw(st.integers(0, 9)) == 0:
        length = draw(st.sampled_from([0, 2**63, 2**31, 1]))
        return length.to_bytes(8, "little") + valid[8:]
    arrays = load(valid)
    name = draw(st.sampled_from(sorted(arrays)))
    how = draw(st.sampled_from(["type", "shape", "number", "drop", "add", "empty"]))
    w = arrays[name]
    if how == "type":
        kind = draw(st.sampled_from(["f2", "f8", "i1", "i8", "u2", "?", "u8"]))
        with np.errstate(all="ignore"):
            arrays[name] = w.astype(kind)
    elif how == "shape":
        arrays[name] = w.reshape(-1)[: draw(st.integers(0, w.size))]
    elif how == "number" and w.size:
        odd = draw(st.sampled_from([np.nan, np.inf, -np.inf, 3e38, -3e38]))
        arrays[name] = w.copy() if w.dtype.kind == "f" else w + w.dtype.type(1)
        if w.dtype.kind == "f":
            with np.errstate(over="ignore"):
                arrays[name].reshape(-1)[draw(st.integers(0, w.size - 1))] = odd
    elif how == "drop":
        del arrays[name]
    elif how == "empty":
        arrays[name] = w.reshape(-1)[:0]
    else:
        arrays[draw(st.text(max_size=5))] = np.zeros(draw(st.integers(0, 3)), np.float32)
    return save({each: np.ascontiguousarray(w) for each, w in arrays.items()})


# --- agents, options, the game ----------------------------------------------------------------


def agent_reader(run: RunDirectory) -> Reader:
    """A small agent's file, and a game that it plays."""
    arrays = load(run.milestones.read(run.milestones.updates()[-1]))
    del arrays["sha256"]  # of before there was one: a forger need not make it fit
    valid = save(arrays)

    def read(content: bytes) -> Any:
        agent = decode_agent(content, "a test")
        game = Game(agent, "watch", make_rng(0, "play"))
        for _ in range(5):
            game.tick()
        assert len(json.dumps(game.describe(), allow_nan=False)) < 1000
        known = {"update", "steps", "episodes", "estimated_return"}
        return {
            "algorithm": agent.algorithm,
            "environment": agent.protocol.name,
            "frame_skips": list(agent.protocol.frame_skips),
            "sticky": agent.protocol.sticky,
            "about": {name: agent.about[name] for name in known & agent.about.keys()},
        }

    def seal(card: Any) -> bytes:
        return save(arrays | {"card": np.frombuffer(as_text(card), np.uint8)})

    return Reader(valid, read, json.loads(arrays["card"].tobytes()), seal, inputs=tensors(valid))


def toml_reader(path: Path) -> Reader:
    """A file of options."""
    document = {"preset": "classic", "hidden": 10, "learning_rate": 1e-3, "verbose": True}

    def seal(options: Any) -> bytes:
        lines = [name.encode() + b" = " + as_text(value) for name, value in options.items()]
        return b"\n".join(lines).replace(b"null", b"1979-05-27")

    def read(content: bytes) -> Any:
        path.write_bytes(content)
        config = resolve_config(None, path, {})
        flat = _plain(config.to_flat())
        assert config.updated(flat, "again") == config
        return {name: flat[name] for name in document}

    return Reader(seal(document), read, document, seal, frozenset(document))


def message_reader() -> Reader:
    """What a browser says to the game; a `ValueError` closes its socket with a line."""
    document = {"type": "aim", "value": 0.5}

    def read(content: bytes) -> Any:
        try:
            kind, value = read_message(content.decode("utf-8", "surrogateescape"))
        except ValueError:
            return None
        return {"type": kind, "value": value}

    return Reader(as_text(document), read, document)


def snapshot_reader(name: str) -> Reader:
    """An emulator's snapshot, played on from."""
    emulator = make_emulator(dataclasses.replace(find_protocol(name), max_frames=2000))
    for _ in range(30):
        emulator.step(2, [0.5] * 6)

    def read(content: bytes) -> None:
        emulator.set_state(content)
        for action in (0, 2, 3, 2):
            emulator.step(action, [0.5] * 6)
        emulator.frame()
        emulator.get_state()

    return Reader(emulator.get_state(), read)
