"""The page in a notebook: a cell that opens it ends at once, with a link, and `close` ends it."""

from __future__ import annotations

import re
import socket

import httpx
import pytest
from waiting import PATIENCE

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

CELLS = [
    "import pixelpong\npage = pixelpong.dashboard(port=0, no_open=True)\npage",
    "import urllib.request\nprint(urllib.request.urlopen(page.url).status)",
    "again = pixelpong.watch(port=0, no_open=True)\nprint(again.url.partition('#')[2])",
    "with again:\n    pass\npage.close()\npage.close()\npage",
]


@pytest.mark.slow
def test_a_cell_that_opens_the_page_ends_and_shows_a_link(tmp_path):
    """In a real kernel, in which a call that waits for Ctrl-C would never let a cell end."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(it) for it in CELLS])
    place = {"metadata": {"path": tmp_path}}
    nbclient.NotebookClient(notebook, timeout=PATIENCE, resources=place).execute()
    first, *_ = ([it for it in cell.outputs if "data" in it] for cell in notebook.cells)
    link = first[0].data["text/html"]
    url, shown = re.search('<a href="([^"]+)"[^>]*>([^<]+)</a>', link).groups()
    assert url == shown
    assert first[0].data["text/plain"] == f"the page is at {url}"
    texts = ["".join(it.get("text", "") for it in cell.outputs) for cell in notebook.cells]
    assert "press Ctrl-C" not in "".join(texts)
    assert texts[1] == "200\n"
    assert texts[2].splitlines()[-1] == "watch/package/best"
    (last,) = (it for it in notebook.cells[3].outputs if "data" in it)
    assert "href" not in last.data["text/html"]
    assert last.data["text/plain"] == f"the page was at {url}"
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    port = int(re.search(r":(\d+)/", url)[1])
    socket.create_server(("127.0.0.1", port)).close()  # it is free again
