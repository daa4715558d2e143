"""Reference from the code: names, options, protocols, commands, as text that a page includes.

    ```{generated-options}
    ```

Each is written once, in the package; nothing here knows one by name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import os
from collections.abc import Callable, Iterable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import pixelpong
from pixelpong.config import OPTIONS, Option
from pixelpong.config.presets import load_preset, preset_names
from pixelpong.config.protocols import PROTOCOLS
from pixelpong.faces import cli

WIDTH = 80
"""Columns of the help texts: what a page of the site has room for."""


def describe_options() -> str:
    """A table a section: flag, file key, help, unit, values, source, default, presets."""
    presets = {name: vars(load_preset(name)) for name in preset_names()}
    sections: dict[str, list[Option]] = {}
    for each in OPTIONS.values():
        sections.setdefault(each.section, []).append(each)
    parts = []
    for section, options in sections.items():
        head = ("Option and key", "What it is", "Default", "Presets")
        rows = [_describe_option(each, presets) for each in options]
        parts.append(f"## {section.capitalize() or 'Run'}\n\n{_table(head, rows)}")
    return "\n\n".join(parts) + "\n"


def _describe_option(each: Option, presets: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    values = each.describe_values()
    words = [each.help, f"{values[0].upper()}{values[1:]}."]
    if each.source:
        words.append(f"Source: {each.source}.")
    if each.is_free:
        words.append("Does not change the result.")
    own = [
        f"{name} {_spell(flat[each.name])}"
        for name, flat in presets.items()
        if flat[each.name] != each.default and each.name != "preset"
    ]
    names = f"[]{{#option-{each.flag[2:]}}}`{each.flag}`<br>`{each.name}`"
    return names, " ".join(words), _spell(each.default), "<br>".join(own) or "–"


def describe_presets() -> str:
    """One table: every option that some preset sets, with what each preset has."""
    presets = {name: vars(load_preset(name)) for name in preset_names()}
    rows = []
    for name, each in OPTIONS.items():
        values = [flat[name] for flat in presets.values()]
        if name != "preset" and any(value != each.default for value in values):
            link = f"[`{name}`](#option-{name.replace('_', '-')})"
            rows.append((link, _spell(each.default), *map(_spell, values)))
    return _table(("Key", "default", *(f"`{name}`" for name in presets)), rows) + "\n"


def describe_names() -> str:
    """The public names, in reStructuredText, which is what autodoc writes."""
    parts = []
    for name in pixelpong._HOMES:  # the public names, the most used first
        each = getattr(pixelpong, name)
        kind = "autoclass" if inspect.isclass(each) else "autofunction"
        if inspect.isclass(each) and issubclass(each, Exception):
            kind = "autoexception"
        members = "   :members:\n   :inherited-members: Exception\n" * inspect.isclass(each)
        parts.append(f".. {kind}:: pixelpong.{name}\n{members}")
    return "\n\n".join(parts) + "\n"


def describe_protocols() -> str:
    """One table: what each environment's name stands for."""
    rows = []
    for card in PROTOCOLS.values():
        low, high = card.frame_skips
        skip = str(low) if low == high else f"{low} to {high}, drawn for each step"
        sticky, most = f"{card.sticky:g}", f"{card.max_frames:,}"
        rows.append((f"`{card.environment}`", skip, sticky, most, card.note))
    head = ("Environment", "Frames a step", "Sticky actions", "Frames at most", "Where from")
    return _table(head, rows) + "\n"


def describe_commands() -> str:
    """The help text of every command, as the command prints it."""
    parts = []
    for words in list_commands():
        name = " ".join(words)
        text = help_of(words)
        parts.append(f"## {name}\n\n```text\n{text}```")
    return "\n\n".join(parts) + "\n"


def list_commands() -> list[list[str]]:
    """Every command, as the words after ``pixelpong``.

    >>> [words for words in list_commands() if words[0] in ("train", "resume")]
    [['train'], ['resume']]
    """
    return [[name] for name in cli.COMMANDS]


def help_of(words: list[str]) -> str:
    """What ``pixelpong WORDS --help`` prints on a terminal of `WIDTH` columns."""
    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            cli.parse([*words, "--help"])
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return printed.getvalue()


def _spell(value: Any) -> str:
    """A value as it stands in a TOML file; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 10_000:
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


@dataclasses.dataclass(frozen=True)
class _Maker:
    """A function that writes Markdown, as a directive."""

    write: Callable[[], str]

    def directive(self) -> type[SphinxDirective]:
        write = self.write

        class Generated(SphinxDirective):
            """Put the text that a function writes in the place of the directive."""

            def run(self) -> list[nodes.Node]:
                return self.parse_text_to_nodes(write(), allow_section_headings=True)

        return Generated


DIRECTIVES = {
    "names": describe_names,
    "options": describe_options,
    "presets": describe_presets,
    "protocols": describe_protocols,
    "commands": describe_commands,
}


def setup(app: Sphinx) -> dict[str, Any]:
    """One directive a text."""
    for name, write in DIRECTIVES.items():
        app.add_directive(f"generated-{name}", _Maker(write).directive())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
