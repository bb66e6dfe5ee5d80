"""Experiments: the paper's studies, their data, networks, solvers, results and report."""
