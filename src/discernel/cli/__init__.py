"""The command line: parse, call one function, print."""

from __future__ import annotations

import sys
import warnings

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(
            f"The command line needs {error.name}, which is not installed. Install the extra: "
            "pip install 'discernel[app]'"
        )
    from discernel.cli.app import app

    warnings.formatwarning = lambda message, *_args, **_options: f"warning: {message}\n"
    app(prog_name="discernel")
