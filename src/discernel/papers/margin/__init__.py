"""Lanckriet 2004: kernels chosen by the margin of a support vector machine."""
