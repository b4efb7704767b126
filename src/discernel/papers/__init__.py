"""One folder per paper: its equations, its program and its solvers."""
