"""The experiments of the papers, and the numbers they published."""
