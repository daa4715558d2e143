"""Our docstrings as napoleon and Sphinx want them: an indented block is shown as it stands.

In the source, a formula or a command is an indented paragraph; in reStructuredText that is a
quotation, whose lines run together, unless the paragraph before ends in two colons. Names in
single backquotes become links where they are the name of something (``default_role``).
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def keep_blocks(lines: list[str]) -> list[str]:
    """`lines` with ``::`` before every indented block that follows an empty line.

    >>> keep_blocks(["The sum.", "", "    a = b", "", "Args:", "    a: one."])
    ['The sum.', '', '::', '', '    a = b', '', 'Args:', '    a: one.']
    """
    kept: list[str] = []
    base = 0  # the indentation of the paragraph before
    is_in_block = False
    for before, line in zip(["", *lines], lines, strict=False):
        indent = len(line) - len(line.lstrip())
        if line.strip():
            begins = not before.strip() and indent >= base + 4 and kept
            if not is_in_block and begins and not _is_announced(kept):
                kept += [" " * base + "::", ""]
            is_in_block = (is_in_block or bool(begins)) and indent > base
            if not is_in_block:
                base = indent
        kept.append(line)
    return kept


def keep_sentences(lines: list[str]) -> list[str]:
    """`lines` with a colon before what is returned, or napoleon takes its first words for a type.

    >>> keep_sentences(["Returns:", "    Two: one, and one more."])
    ['Returns:', '    : Two: one, and one more.']
    """
    kept = list(lines)
    for number, line in enumerate(lines[:-1]):
        if line.strip() in ("Returns:", "Yields:"):
            text = lines[number + 1]
            bare = text.lstrip()
            kept[number + 1] = f"{text[: len(text) - len(bare)]}: {bare}"
    return kept


def _is_announced(kept: list[str]) -> bool:
    said = [line for line in kept if line.strip()]
    return bool(said) and said[-1].rstrip().endswith("::")


def shorten_arrays(signature: str) -> str:
    """`signature` with the arrays named as in the source.

    >>> shorten_arrays("(x: ~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.uint8]])")
    '(x: ~numpy.typing.NDArray[~numpy.uint8])'
    """
    return _ARRAY.sub(r"~numpy.typing.NDArray[\1]", signature)


_ARRAY = re.compile(
    r"~?numpy\.ndarray\[~?tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?numpy\.dtype\[([~\w.]+)\]\]"
)


def _shorten(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    return signature and shorten_arrays(signature), returns and shorten_arrays(returns)


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = keep_blocks(keep_sentences(lines))
    if what in ("attribute", "data", "property"):
        # An empty comment: napoleon takes the words before a colon in the first line for a type.
        lines[:0] = ["..", ""]


def setup(app: Sphinx) -> dict[str, Any]:
    """Come before napoleon, which reads the sections."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-process-signature", _shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
