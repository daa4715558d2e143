"""The site: `make docs`. Offline, warnings are errors, notebooks are run."""

from __future__ import annotations

import hashlib
import logging
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "src" / "pixelpong"
sys.path.insert(0, str(DOCS / "_ext"))

import pixelpong  # noqa: E402

project = "pixelpong"
copyright = "the pixelpong authors; MIT licence"
version = release = pixelpong.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "files",
    "generated",
    "pages",
]
exclude_patterns = ["_build", "_ext", "_templates", "log.md", "**.ipynb_checkpoints", "**/*.ipynb"]
templates_path = ["_templates"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
highlight_language = "text"
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", r".*"),  # a name in backquotes that is a word of ours, not of the code
    (r"py:.*", rf"({'|'.join(sorted(sys.stdlib_module_names))}|numpy|np|gymnasium)\..*"),
    # Imported for the type checker alone.
    (r"py:.*", r"Path|NDArray|Event|Media|Options|Record|Result"),
    (r"py:class", r"Count|Positive|Number|Seconds|Speed|Length|Port|Order|Meta"),  # have bounds
    (r"py:class", r"pixelpong\..*\..*"),  # of the public names; read in the source
    (r"py:class", r"pixelpong\.ServedPage"),  # shown under the name of its module
    (r"py:.*", r"msgspec\..*|.*Annotated.*|[\d.]+|.*\.L"),  # bounds of a field; a type variable
]

# Pages
myst_enable_extensions = ["dollarmath", "amsmath", "attrs_inline", "deflist", "html_image"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
suppress_warnings = ["myst.strikethrough"]

# Notebooks: run once, and again when the code that they run has changed.
nb_execution_mode = "cache"
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_code_prompt_show = "Show a solution"
nb_code_prompt_hide = "Hide the solution"
logging.getLogger("traitlets").setLevel(logging.WARNING)  # nbclient tells of each notebook


def _fingerprint() -> str:
    """Of the package: notebooks depend on its code as much as on their own."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


nb_execution_cache_path = str(DOCS / "_build" / "notebooks" / _fingerprint())

# Reference
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# Looks
html_theme = "furo"
pygments_dark_style = "github-dark-high-contrast"
html_title = "pixelpong"
html_static_path = ["_static"]
html_css_files = ["pixelpong.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#9a4a1c",
        "color-brand-content": "#9a4a1c",
    },
    "dark_css_variables": {"color-brand-primary": "#f0a06c", "color-brand-content": "#f0a06c"},
}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
