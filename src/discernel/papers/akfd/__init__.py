"""Fung 2004: A-KFD, kernel Fisher discriminants whose weights and coefficients alternate."""
