"""The command line: parse, call one function, print."""

from __future__ import annotations

import codecs
import io
import json
import sys
import warnings

from discernel.exceptions import missing_extra

__all__ = ["main", "replace_missing_characters"]


#: What our own signs become where the output has no such character.
_PLAIN = {
    **{"█": "#", "━": "-", "–": "-", "−": "-", "→": "->", "←": "<-", "…": "...", "×": "x"},
    **{"±": "+/-", "≤": "<=", "≥": ">=", "λ": "lambda", "σ": "sigma", "²": "^2"},
}


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    """Return what is written for characters that an output does not have, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    # Others as JSON has them, which a reader of JSON lines understands.
    return "".join(_PLAIN.get(sign) or json.dumps(sign)[1:-1] for sign in missing), error.end


def replace_missing_characters(*streams: object) -> None:
    """Let text streams write characters that their encoding lacks in another way.

    Parameters
    ----------
    *streams : file
        Such as ``sys.stdout``; what is not a text stream stays as it is.
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
