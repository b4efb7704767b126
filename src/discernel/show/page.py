"""HTML pages as single files that need no network."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from discernel.exceptions import needs_extra
from discernel.rows.writing import write_file


def write_page(template: str, path: str | Path, **values: Any) -> Path:
    """Render a template with the common style and script, and write the page atomically.

    Parameters
    ----------
    template : str
        File name of the template.
    path : str or Path
        The file to write.
    **values
        Variables of the template.
    """
    with needs_extra("A report needs Jinja2", "app"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
    look: dict[str, Any] = {
        "trim_blocks": True,
        "lstrip_blocks": True,
        "undefined": StrictUndefined,
    }
    environment = Environment(loader=PackageLoader("discernel.show"), autoescape=True, **look)
    style, script = _text("report.css"), _text("report.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = environment.get_template(template).render(
        style=style, script=script, policy=policy, **values
    )
    return write_file(path, page.encode())


def _text(name: str) -> str:
    return files("discernel.show").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the digest of a style or a script for a Content-Security-Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
