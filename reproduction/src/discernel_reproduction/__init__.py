"""The tables and figures of five papers, run again with discernel, and what they compare with."""
