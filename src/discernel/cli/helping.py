"""Help pages without types beside words that take no value."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

__all__ = ["PlainCommand", "PlainGroup"]


def _without_types(params: list[Any]) -> list[Any]:
    """Return parameters that show no type: options without a value, and arguments.

    Typer writes ``<bool>`` beside ``--help``, and ``<str>`` beside an argument whose help says what
    it takes.
    """
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.param_type_name == "argument" and hasattr(param, "display_type_rich"):
            param.display_type_rich = lambda ctx: None
    return params


class PlainCommand(TyperCommand):
    """A command with such a help page."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as the help page shows them."""
        return _without_types(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """All commands, with such a help page."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as the help page shows them."""
        return _without_types(super().get_params(ctx))
