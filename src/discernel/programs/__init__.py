"""Criteria as programs with certificates, and the solvers that minimise them."""
