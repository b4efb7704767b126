"""One folder per paper, with its equations, program, solvers and estimator."""
