"""Fung 2004: A-KFD, a kernel Fisher discriminant with alternating weights and coefficients."""
