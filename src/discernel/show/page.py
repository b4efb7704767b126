"""HTML pages as single files that need no network."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from discernel.exceptions import missing_extra
from discernel.rows.writing import write_file


class PageTemplate:
    """A page template with the common style, script and Content-Security-Policy.

    Parameters
    ----------
    name : str
        File name of the template.
    """

    def __init__(self, name: str) -> None:
        try:
            from jinja2 import Environment, PackageLoader, StrictUndefined
        except ImportError as error:
            raise missing_extra("A report needs Jinja2", "app") from error
        loader = PackageLoader("discernel.show")
        environment = Environment(
            loader=loader,
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._template = environment.get_template(name)

    def write(self, path: str | Path, **values: Any) -> Path:
        """Render the template, write the page atomically, and return its path."""
        style, script = _text("report.css"), _text("report.js")
        policy = (
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "base-uri 'none'; form-action 'none'"
        )
        page = self._template.render(style=style, script=script, policy=policy, **values)
        return write_file(path, page.encode())


def _text(name: str) -> str:
    return files("discernel.show").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the digest of a style or a script for a Content-Security-Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
