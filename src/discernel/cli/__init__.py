"""The command line: parse, call one function, print."""

from __future__ import annotations

import sys
import warnings

from discernel.exceptions import missing_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit(f"error: {missing_extra('The command line needs typer and rich', 'app')}")
    from discernel.cli.app import app

    warnings.formatwarning = lambda message, *_args, **_options: f"warning: {message}\n"
    app(prog_name="discernel")
