"""The spectrum of one kernel matrix, re-weighted by class separability (Yeung 2006)."""
