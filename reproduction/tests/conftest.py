"""Fixtures of the library's tests that these need too."""

from tests.conftest import paper_data

__all__ = ["paper_data"]
