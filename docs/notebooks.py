"""Writes the tutorial's chapters as notebooks, for JupyterLab and others.

    python docs/notebooks.py                        # into docs/_build/ipynb
    python docs/notebooks.py --source 'pixelpong[all] @ git+https://…'

A chapter is a text file. The notebook made from it has one cell more, the first: it installs the
package if it is missing, so a machine that knows nothing of pixelpong can run the chapter. A wheel
in the notebook's folder comes before `--source`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jupytext
import nbformat

TUTORIAL = Path(__file__).resolve().parent / "tutorial"
OUT = TUTORIAL.parent / "_build" / "ipynb"

FIRST_CELL = """\
# Installs pixelpong if it is missing. It takes a minute, once.
import importlib.util
from pathlib import Path

if importlib.util.find_spec("pixelpong") is None:
    wheels = sorted(Path().glob("pixelpong-*.whl"))
    source = f"./{wheels[-1]}[all]" if wheels else "SOURCE"
    %pip install -q "{source}"
"""


def make_notebook(chapter: Path, source: str) -> nbformat.NotebookNode:
    """The notebook of a chapter.

    Args:
        chapter: the text file.
        source: what pip installs if the package is missing.
    """
    notebook = jupytext.read(chapter)
    installs = nbformat.v4.new_code_cell(FIRST_CELL.replace("SOURCE", source), id="install")
    notebook.cells.insert(0, installs)
    notebook.metadata.kernelspec = {
        "display_name": "Python 3", "language": "python", "name": "python3",
    }  # fmt: skip
    return notebook


def main() -> None:
    """Write them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chapters", type=Path, default=TUTORIAL, help="folder (%(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder (%(default)s)")
    parser.add_argument(
        "--source", default="pixelpong[all]", help="what pip installs (%(default)s)"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for chapter in sorted(options.chapters.glob("[0-9]*_*.md")):
        path = options.out / f"{chapter.stem}.ipynb"
        nbformat.write(make_notebook(chapter, options.source), path)
        print(path)


if __name__ == "__main__":
    main()
