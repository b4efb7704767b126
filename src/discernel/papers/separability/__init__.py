"""Yeung 2006: kernels chosen by class separability, transductive ones too."""
