"""An exact Gaussian process: seven hyperparameters by marginal likelihood, which has several maxima: from three starts.

Where the kernel matrix is not positive definite to rounding, its Cholesky factorisation raises. In a line search that
is an everyday event: signedstep takes such a trial for infinitely high and goes on from the best point, where
torch.optim.LBFGS passes the exception on.
"""

import math

import torch
from torch import Tensor

import signedstep


def friedman(n: int) -> tuple[Tensor, Tensor]:
    """Friedman's first function, four inputs that matter and one that does not, with noise."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(n, 5, generator=generator, dtype=torch.float64)
    y = 10 * torch.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
    y = y + 0.5 * torch.randn(n, generator=generator, dtype=torch.float64)
    return x, (y - y.mean()) / y.std()


def main(n: int = 200) -> list[signedstep.Result]:
    x, y = friedman(n)

    def negative_log_likelihood(log: Tensor) -> Tensor:
        """Per observation; the logarithms of five lengths, of the signal's size and of the noise's."""
        lengths, signal, noise = log[:5].exp(), log[5].exp(), log[6].exp()
        scaled = x / lengths
        squares = (scaled[:, None] - scaled[None]).square().sum(2)
        covariance = signal**2 * torch.exp(-0.5 * squares) + noise**2 * torch.eye(n, dtype=x.dtype)
        L = torch.linalg.cholesky(covariance)
        white = torch.linalg.solve_triangular(L, y[:, None], upper=False)
        return (0.5 * white.square().sum() + L.diagonal().log().sum()) / n + 0.5 * math.log(2 * math.pi)

    results = []
    for start in (0.0, 3.0, -3.0):
        log = torch.full((7,), start, dtype=torch.float64)
        result = signedstep.minimize(negative_log_likelihood, log)
        results.append(result)
        lengths = " ".join(f"{length:8.3g}" for length in result.x[:5].exp().tolist())
        print(f"from {start:4}: {result.fun:7.4f} in {result.nfev:3} evaluations; lengths {lengths}; {result.message}")
    return results


if __name__ == "__main__":
    main()
