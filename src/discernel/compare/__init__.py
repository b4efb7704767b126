"""Comparisons of methods as plain data: plan, runner, store, statistics; and users' files."""
