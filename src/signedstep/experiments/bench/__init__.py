"""The benchmark: problems x solvers x seeds, evaluations counted from outside the solvers."""
