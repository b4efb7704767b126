"""The command line: each command parses its options, calls one function and prints the result."""

from __future__ import annotations

import codecs
import io
import json
import sys
import warnings

from discernel.exceptions import missing_extra

__all__ = ["main", "replace_missing_characters"]


#: Replacements of special characters for outputs whose encoding lacks them.
_PLAIN = {
    **{"█": "#", "━": "-", "–": "-", "−": "-", "→": "->", "←": "<-", "…": "...", "×": "x"},
    **{"±": "+/-", "≤": "<=", "≥": ">=", "λ": "lambda", "σ": "sigma", "²": "^2"},
}


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    """Return replacements for characters that cannot be encoded, and the position after them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    # Other characters become JSON escapes, which keep JSON lines valid.
    return "".join(_PLAIN.get(sign) or json.dumps(sign)[1:-1] for sign in missing), error.end


def replace_missing_characters(*streams: object) -> None:
    """Make text streams replace characters that their encoding lacks.

    Parameters
    ----------
    *streams : file
        Such as ``sys.stdout``; other objects than text streams are ignored.
    """
    codecs.register_error("discernel", _replace_characters)
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="discernel")


def main() -> None:
    """Run the command line."""
    replace_missing_characters(sys.stdout, sys.stderr)
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit(f"error: {missing_extra('The command line needs typer and rich', 'app')}")
    from discernel.cli.app import app

    warnings.formatwarning = lambda message, *_args, **_options: f"warning: {message}\n"
    app(prog_name="discernel")
