"""When should the first layer of a network multiply sparsely? Time of a product and its gradient, by density."""

import argparse
import time
from collections.abc import Callable

import scipy.sparse
import torch

from signedstep.experiments.models import sparse_product


def milliseconds(product: Callable[[torch.Tensor], torch.Tensor], W: torch.Tensor, repeats: int) -> float:
    """The fastest of some evaluations with gradient."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        product(W).sum().backward()
        best = min(best, time.perf_counter() - began)
    return best * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--width", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    W = torch.ones(args.features, args.width, dtype=torch.float64, requires_grad=True)
    print(f"{args.rows} x {args.features} by {args.width}, one thread, milliseconds\n density   sparse    dense")
    for density in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0):
        X = scipy.sparse.csr_array(scipy.sparse.random_array((args.rows, args.features), density=density, rng=0))
        dense = torch.tensor(X.toarray())
        fast = milliseconds(sparse_product(X), W, args.repeats)
        print(f"{density:8.2f} {fast:8.2f} {milliseconds(lambda W, X=dense: X @ W, W, args.repeats):8.2f}")


if __name__ == "__main__":
    main()
