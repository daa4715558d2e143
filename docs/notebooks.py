"""Writes the tutorial's chapters as notebooks, for JupyterLab and others.

    python docs/notebooks.py                        # into docs/_build/ipynb
    python docs/notebooks.py --chapters docs/zh/tutorial
    python docs/notebooks.py --release ADDRESS      # of a folder with the wheel and constraints.txt

A chapter is a text file. The notebook made from it has one cell more, the first: it installs the
package if it is missing, so a machine that knows nothing of pixelpong can run the chapter, as on
Colab or Kaggle. It takes a release, or what is in the notebook's folder, or the clone around it.

Links to chapters lead to their notebooks, pictures are inside, and links to other files lead to
them as long as the notebook stays in its folder in the clone.
"""

from __future__ import annotations

import argparse
import base64
import mimetypes
import os
import re
from pathlib import Path

import jupytext
import nbformat

import pixelpong

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
TUTORIAL = DOCS / "tutorial"
OUT = DOCS / "_build" / "ipynb"

FIRST_CELL = """\
# Installs pixelpong if it is missing, with the versions it is tested with. It takes a minute, once.
import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path

if importlib.util.find_spec("pixelpong") is None:
    here, release = Path.cwd(), RELEASE
    wheels = sorted(here.glob("pixelpong-*.whl"))
    clones = [folder for folder in here.parents if (folder / "src/pixelpong").is_dir()]
    if release:
        %pip install -q -c "{release}/constraints.txt" "pixelpong[all] @ {release}/WHEEL"
    elif wheels and (here / "constraints.txt").is_file():
        %pip install -q -c "{here}/constraints.txt" "{wheels[-1]}[all]"
    elif wheels:
        %pip install -q "{wheels[-1]}[all]"
    elif clones:
        %pip install -q -c "{clones[0]}/constraints.txt" -e "{clones[0]}[all]"
    else:
        raise ModuleNotFoundError("put a wheel of pixelpong here, or open this in a clone")
    if "numpy" in sys.modules and sys.modules["numpy"].__version__ != version("numpy"):
        raise RuntimeError("NumPy was replaced: restart the kernel, then run all cells")
"""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)|\$\$.+?\$\$|\$[^$]+\$", flags=re.S)


def make_notebook(
    chapter: Path, release: str = "", out: Path | None = OUT
) -> nbformat.NotebookNode:
    """The notebook of a chapter.

    Args:
        chapter: the text file.
        release: the address of a folder with the wheel and constraints.txt, from which pip installs
            the package if it is missing; by default what is in the notebook's folder, or the clone
            that it is in.
        out: the notebook's folder; None if that is unknown. Then a link to a file that is not a
            chapter becomes the file's name.
    """
    notebook = jupytext.read(chapter)
    headings = re.findall(r"^#+ +(.+)$", chapter.read_text("utf-8"), flags=re.M)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            _lead_on(cell, chapter.parent, headings, out)
    wheel = f"pixelpong-{pixelpong.__version__}-py3-none-any.whl"
    installs = FIRST_CELL.replace("RELEASE", repr(release.rstrip("/"))).replace("WHEEL", wheel)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(installs, id="install"))
    notebook.metadata.kernelspec = {
        "display_name": "Python 3", "language": "python", "name": "python3",
    }  # fmt: skip
    return notebook


def _lead_on(
    cell: nbformat.NotebookNode, folder: Path, headings: list[str], out: Path | None
) -> None:
    """Change a cell's links and pictures to what a notebook has."""

    def change(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        path, _, anchor = target.partition("#")
        file = (folder / path).resolve()
        if re.match(r"[a-z]+:", target):
            return match[0]
        if mark:
            kind, data = mimetypes.guess_type(file)[0], base64.b64encode(file.read_bytes())
            cell.setdefault("attachments", {})[file.name] = {kind: data.decode()}
            return f"![{text}](attachment:{file.name})"
        if not path:  # JupyterLab's name of a heading
            (heading,) = [it for it in headings if it.lower().replace(" ", "-") == anchor]
            return f"[{text}](#{heading.replace(' ', '-')})"
        if file.parent == folder.resolve() and file.suffix == ".md":
            return f"[{text}]({file.stem}.ipynb)"
        if out:
            return f"[{text}]({Path(os.path.relpath(file, out)).as_posix()})"
        return f"{text} (`{file.relative_to(ROOT).as_posix()}`)"

    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        hidden.append(match[0])
        return f"\0{len(hidden) - 1}\0"

    # Brackets in code and in formulas are not links; code within a link's text is text.
    text = LINK.sub(change, CODE.sub(hide, cell.source))
    cell.source = re.sub("\0(\\d+)\0", lambda match: hidden[int(match[1])], text)


def write_notebooks(
    chapters: Path = TUTORIAL, release: str = "", out: Path = OUT, *, stays: bool = True
) -> list[Path]:
    """Write the notebooks of all chapters in a folder.

    Args:
        chapters: the folder.
        release: from where pip installs the package, see `make_notebook`.
        out: where they are written.
        stays: whether they are to be used there, so that links may lead out of the folder.
    """
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for chapter in sorted(chapters.glob("[0-9]*_*.md")):
        paths.append(out / f"{chapter.stem}.ipynb")
        notebook = make_notebook(chapter, release, out.resolve() if stays else None)
        nbformat.write(notebook, paths[-1])
    return paths


def main() -> None:
    """Write them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chapters", type=Path, default=TUTORIAL, help="folder (%(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder (%(default)s)")
    parser.add_argument("--release", default="", help="address of a wheel's folder")
    options = parser.parse_args()
    stays = not options.release
    for path in write_notebooks(options.chapters, options.release, options.out, stays=stays):
        print(path)


if __name__ == "__main__":
    main()
