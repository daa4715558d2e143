"""Writes the module of option types from the options themselves."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from pixelpong.config import OPTIONS
from pixelpong.config import __file__ as config_file
from pixelpong.config.option import Option

MODULE = Path(config_file).with_name("options.py")

HEAD = '''"""The training options as types, for editors and type checkers; generated from `Config`.

Do not edit it. `Config` is where options are defined; a test writes this module from it and
compares. CONTRIBUTING has the command, under "Recorded results".
"""

from __future__ import annotations

from typing import Literal, SupportsFloat, SupportsIndex, TypedDict

# NumPy's numbers are numbers too.
Int = SupportsIndex
Float = SupportsFloat


class Options(TypedDict, total=False):
    """The options that `pixelpong.train` accepts by name."""

'''
WORDS = {int: "Int", float: "Float", str: "str", bool: "bool"}


def written_types() -> str:
    """The module as it should be; the preset is not an option but the first argument."""
    options = (option for name, option in OPTIONS.items() if name != "preset")
    return HEAD + "".join(f"    {option.name}: {word_of(option)}\n" for option in options)


def word_of(option: Option) -> str:
    """The type that an editor shows, without bounds, which no type checker knows."""
    choices = ", ".join(f'"{choice}"' for choice in option.choices)
    word = f"Literal[{choices}]" if choices else WORDS[option.base_type]
    return f"{word} | None" if type(None) in get_args(option.type) else word
