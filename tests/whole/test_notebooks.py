"""The notebooks made from the chapters: their links lead somewhere, their first cell installs."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from types import SimpleNamespace

import pytest
from shown import DOCS

import pixelpong

jupytext = pytest.importorskip("jupytext")
jinja2 = pytest.importorskip("jinja2")
inputtransformer2 = pytest.importorskip("IPython.core.inputtransformer2")
sys.path.append(str(DOCS))
import notebooks  # noqa: E402

FOLDERS = (DOCS / "tutorial", DOCS / "zh/tutorial")
CHAPTERS = sorted((DOCS / "tutorial").glob("[0-9]*_*.md"))
BOTH = ("{wheel}", "constraints.txt")  # beside a notebook


def read_targets(text: str) -> list[str]:
    """The targets of all links and pictures, found in another way than `notebooks` does."""
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text, flags=re.S)
    return [target for target in re.findall(r"\]\(([^)\s]*)\)", text) if "://" not in target]


@pytest.mark.parametrize("chapters", FOLDERS, ids=["en", "zh"])
@pytest.mark.parametrize("stays", [True, False], ids=["in the clone", "downloaded"])
def test_every_link_and_picture_of_a_notebook_is_alive(chapters, stays, tmp_path):
    paths = notebooks.write_notebooks(chapters, out=tmp_path / "out", stays=stays)
    assert len(paths) == 15
    followed = pictures = 0
    for path in paths:
        cells = notebooks.nbformat.read(path, as_version=4).cells
        texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
        headings = re.findall(r"^#+ +(.+)$", "\n".join(texts), flags=re.M)
        for cell in cells:
            for target in read_targets(cell.source) if cell.cell_type == "markdown" else ():
                kind, _, name = target.partition(":")
                if kind == "attachment":
                    ((mime, data),) = cell.attachments[name].items()
                    assert mime.startswith("image/"), name
                    assert len(data) > 1000, name
                    pictures += 1
                elif target.startswith("#"):
                    assert target[1:] in [it.replace(" ", "-") for it in headings], (path, target)
                else:
                    file = (path.parent / target.partition("#")[0]).resolve()
                    assert file.is_file(), (path, target)
                    assert stays or file.parent == path.parent, (path, target)
                    assert file.parent != chapters, "a chapter's text, not its notebook"
                followed += 1
    assert pictures == 2
    assert followed >= (40 if stays else 15)


def test_the_code_of_a_chapter_is_that_of_its_notebook(tmp_path):
    for chapter in CHAPTERS:
        wanted = [cell.source for cell in jupytext.read(chapter).cells if cell.cell_type == "code"]
        made = notebooks.make_notebook(chapter).cells
        assert [cell.source for cell in made if cell.cell_type == "code"][1:] == wanted


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_no_name_of_a_chapter_is_missing_unused_or_hidden_by_another(chapter):
    """As one program: a function that a chapter writes hides the package's one of that name."""
    code = jupytext.writes(jupytext.read(chapter), "py:light")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "-"]
    checked = subprocess.run(ruff, input=code, capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stdout) == (0, "All checks passed!\n")


@pytest.mark.parametrize(
    ("release", "beside", "folder", "wanted"),
    [
        ("ftp://x/", (), "", '-q -c "ftp://x/constraints.txt" "pixelpong[all] @ ftp://x/{wheel}"'),
        ("", ("{wheel}",), "", '-q "{here}/{wheel}[all]"'),
        ("", BOTH, "", '-q -c "{here}/constraints.txt" "{here}/{wheel}[all]"'),
        ("", (), "src/pixelpong", '-q -c "{clone}/constraints.txt" -e "{clone}[all]"'),
        ("", (), "", None),
    ],
    ids=["release", "wheel", "wheel and pins", "clone", "none"],
)  # fmt: skip
def test_the_first_cell_installs_what_is_missing(
    release, beside, folder, wanted, tmp_path, monkeypatch
):
    wheel = f"pixelpong-{pixelpong.__version__}-py3-none-any.whl"
    clone, here = tmp_path / "a clone", tmp_path / "a clone/docs/_build/ipynb"
    here.mkdir(parents=True)
    (clone / folder).mkdir(parents=True, exist_ok=True)
    for name in beside:
        (here / name.format(wheel=wheel)).touch()
    monkeypatch.chdir(here)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    cell = notebooks.make_notebook(DOCS / "tutorial/01_the_game.md", release).cells[0].source
    asked = []

    class Shell:
        def run_line_magic(self, name, line):
            # IPython fills in what stands in braces.
            asked.append((name, re.sub(r"\{(.+?)\}", lambda m: str(eval(m[1], space)), line)))

    space = {"get_ipython": Shell}
    code = inputtransformer2.TransformerManager().transform_cell(cell)
    if wanted is None:
        with pytest.raises(ModuleNotFoundError, match="a wheel of pixelpong"):
            exec(code, space)
    else:
        exec(code, space)
        assert asked == [("pip", f"install {wanted.format(here=here, clone=clone, wheel=wheel)}")]
        monkeypatch.setattr("numpy.__version__", "1.0")
        with pytest.raises(RuntimeError, match="restart the kernel"):
            exec(code, space)


def test_the_site_offers_the_notebook_of_each_chapter(tmp_path):
    """The link of the template leads to what the build writes."""
    pages = runpy.run_path(str(DOCS / "_ext/pages.py"))
    pages["write_notebooks"](
        SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html")), None
    )
    text = (DOCS / "_templates/page.html").read_text("utf-8")
    texts = {"page.html": text, "!page.html": "{% block content %}{% endblock %}"}
    template = jinja2.Environment(loader=jinja2.DictLoader(texts)).get_template("page.html")
    for folder in ("tutorial", "zh/tutorial"):
        for chapter in [path.stem for path in (DOCS / folder).glob("[0-9]*.md")]:
            page = template.render(
                pagename=f"{folder}/{chapter}", hasdoc=lambda _: False, pathto=lambda to, _: to
            )
            (link,) = re.findall(r'href="([^"]+)" download', page)
            assert (tmp_path / link).is_file()
    assert "download" not in template.render(pagename="tutorial/index", hasdoc=lambda _: False)
