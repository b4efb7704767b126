"""Pothin 2006: kernels and their parameters chosen by alignment with the classes."""
