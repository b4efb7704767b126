"""How the documentation site is built: ``make docs``.

Pages are Markdown that reads well without the site too. What only the site needs is done here:
links to files of the source, the changelog and the like become links within the site, and the
references become citations.
"""

from __future__ import annotations

import re
import types
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from docutils import nodes
from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

import discernel

ROOT = Path(__file__).parent.parent

project = "discernel"
author = "The discernel developers"
copyright = author
release = version = discernel.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
#: `name` in a docstring is a name of the library, where it is one.
default_role = "py:obj"
nitpicky = False

# ---- pages ---------------------------------------------------------------------------------------

myst_heading_anchors = 4  # as GitHub makes them: pages link to each other's headings
# Headings of the changelog leave levels out; not every reference is cited in a docstring.
suppress_warnings = ["myst.header", "ref.citation", "config.cache"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "a11y-high-contrast-light"

# ---- the API -------------------------------------------------------------------------------------

autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"  # the docstrings say it in words
viewcode_line_numbers = True
toc_object_entries_show_parents = "hide"

# ---- the gallery ---------------------------------------------------------------------------------


def style(gallery: dict[str, Any], story: str) -> None:
    """Set the look of all pictures, before each story."""
    colors = ["#2f6f9f", "#c4452f", "#3f9b76", "#d9982b", "#9a9aab"]
    plt.rcParams.update(
        {
            "axes.prop_cycle": plt.cycler(color=colors),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "figure.dpi": 110,
            "font.size": 12,
        }
    )


sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "thumbnail_size": (1000, 430),
    "reset_modules": ("matplotlib", style),
    "doc_module": ("discernel",),
    "reference_url": {"discernel": None},
    "backreferences_dir": "api/generated/backreferences",
    "capture_repr": (),
    # Of what is imported; what variables hold would be looked for under names that moved.
    "inspect_global_variables": False,
}

# ---- how it looks --------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "discernel"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_domain_indices = False  # of modules: most are internal
html_theme_options = {
    "logo": {"text": "discernel"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "default": []},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "show_toc_level": 2,
}
html_sidebars = {"index": [], "quickstart": [], "changelog": [], "default": []}

# ---- what only the site needs --------------------------------------------------------------------

LOGGER = logging.getLogger(__name__)
#: A link to code whose text is the name of a thing in it, such as [`RKDA`](../src/…/rkda.py).
CODE_LINK = re.compile(r"\[`([\w.]+)`\]\(\.\./src/(discernel/[\w/]+)\.py\)")
#: A link to a story of the gallery.
STORY_LINK = re.compile(r"\]\(\.\./examples/gallery/(plot_\w+)\.py\)")
#: A link to a page of the reproduction, which the site hands out as a file.
OUTSIDE_LINK = re.compile(r"\]\((\.\./reproduction/[\w/.]+\.md)(?:#[^)]*)?\)")
#: Files outside this folder that are pages of the site.
TAKEN = {
    "changelog": "CHANGELOG.md",
    "code_of_conduct": "CODE_OF_CONDUCT.md",
    "contributing": "CONTRIBUTING.md",
}
ELSEWHERE = {f"../{file}": f"{page}.md" for page, file in TAKEN.items()} | {
    "../examples/gallery/GALLERY_HEADER.rst": "gallery/index.rst",
}
#: An entry of the references.
ENTRY = re.compile(r"^- \*\*\[(\w+)\]\*\* (.+)$", flags=re.MULTILINE)


def to_objects(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to files of the source into links to what they document."""
    if page in TAKEN:
        text = (ROOT / TAKEN[page]).read_text(encoding="utf-8")
        links = re.sub(r"\]\((?!https?:|#)([^)]+)\)", r"](../\1)", text)  # as seen from here
        source[0] = links.replace("](../docs/", "](")
    source[0] = CODE_LINK.sub(_object_role, source[0])
    for file, here in ELSEWHERE.items():
        source[0] = source[0].replace(f"]({file}", f"]({here}")
    source[0] = OUTSIDE_LINK.sub(r"](path:\1)", source[0])
    source[0] = STORY_LINK.sub(r"](gallery/\1.rst)", source[0])
    source[0] = source[0].replace("\n\n```\n", "\n```\n")  # the blank line that ends an example
    if page == "references":
        entries = [f".. [{key}] {text}" for key, text in ENTRY.findall(source[0])]
        start = ENTRY.search(source[0])
        assert start is not None
        citations = "\n".join(entries)
        source[0] = f"{source[0][: start.start()]}```{{eval-rst}}\n{citations}\n```\n"


def _object_role(link: re.Match[str]) -> str:
    name, path = link.groups()
    module = path.replace("/", ".").removesuffix(".__init__")
    return f"{{py:obj}}`{name} <{module}.{name}>`"


def short_names(app: Sphinx, env: Any, node: Any, contents: nodes.Element) -> Any:
    """Resolve `RBF` to discernel.kernels.RBF, where only one documented thing is called so."""
    if node.get("refdomain") != "py":
        return None
    wanted = node["reftarget"].lstrip("~.")
    objects = env.get_domain("py").objects
    # An alias and what it stands for lead to the same page.
    found = {
        (entry.docname, entry.node_id)
        for name, entry in objects.items()
        if entry.docname.startswith("api/")
        and (name == wanted or name.endswith(f".{wanted}") or _public_form(name, wanted))
    }
    if len(found) != 1:
        if node["refdoc"] == "equations":
            LOGGER.warning("no such thing is documented: %s", wanted, location=node)
        return None
    ((page, anchor),) = found
    return make_refnode(app.builder, node["refdoc"], page, anchor, contents, wanted)


def _public_form(name: str, wanted: str) -> bool:
    """Return whether discernel.kernels.distance.RBF is asked for, and name is its public form."""
    last = wanted.rpartition(".")[2]
    return wanted.startswith("discernel.") and name.endswith(f".{last}") and name.count(".") <= 2


def hide_internals(app: Sphinx, env: Any) -> None:
    """Leave internal names out of the search and the index; links to them keep working."""
    env.get_domain("index").entries["internals"] = []
    objects = env.get_domain("py").objects
    for name, entry in objects.items():
        if entry.docname == "internals":
            objects[name] = entry._replace(aliased=True)  # the search skips aliases


def as_written(self: Any, name: str, text: list[str], is_attribute: bool) -> tuple[str, list[str]]:
    """Show what a class says of an attribute, not only the first sentence of its property."""
    return f"**{self._escape_args_and_kwargs(name.strip())}**", text


#: Methods that an enumeration of words has from its words.
BUILTIN = (types.BuiltinFunctionType, types.MethodDescriptorType)


def skip_foreign(
    app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what is inherited from scikit-learn, which documents it."""
    if isinstance(obj, BUILTIN):
        return True
    # What a property calls, cached or not.
    source = getattr(obj, "fget", None) or getattr(obj, "func", None) or obj
    module = getattr(source, "__module__", None) or "discernel"
    return None if module.startswith("discernel") else True


def repair(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Change what extensions write that leads nowhere, or that a screen reader cannot take."""
    body = context.get("body", "")
    # Of a thing with a public and an inner name, the way back from its source knows only one.
    body = re.sub(r'<a class="viewcode-back".*?</a>', "", body)
    context["body"] = body.replace('<div role="list" class="citation-list">', "<div>")


def setup(app: Sphinx) -> None:
    """Register what is above."""
    # A busy machine may forecast long fits; the pages are not about that.
    warnings.filterwarnings("ignore", message="This fit is expected to take")
    SphinxDocString._process_param = as_written
    app.connect("source-read", to_objects)
    app.connect("missing-reference", short_names)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("env-check-consistency", hide_internals)  # once the cache is written
    app.connect("html-page-context", repair)
