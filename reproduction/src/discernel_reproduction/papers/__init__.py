"""The experiments of each paper, one file a paper."""
