"""Ten training problems: signedstep.LBFGS next to torch.optim.LBFGS at equal closure calls.

    python benchmarks/training_problems.py --seeds 5 --calls 50 100 200

Both get the same start, history_size, lr = 1 and a strong Wolfe search, and no tolerance ends a run early. What is
compared is the lowest loss among the first N closure calls, counted from outside. One row per problem: the geometric
mean over the seeds of ours / torch's, and how many seeds end more than 1% worse and more than 1% better. Last,
the ratio of all runs that is farthest from 1.

With --control, torch.optim.LBFGS from a start that differs in the last digit takes our place: how far two runs of the
same method come apart by rounding alone.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from sklearn import datasets
from torch import Tensor, nn

import signedstep

HISTORY = 20
Problem = tuple[Sequence[Tensor], Callable[[], Tensor]]
"""Parameters and loss."""


class _Enough(BaseException):
    """The closure calls are used up."""


def trace(problem: Problem, make: Callable[..., torch.optim.Optimizer], calls: int, **options: Any) -> list[float]:
    """The lowest loss up to each closure call. A run that ends or crashes keeps its last one."""
    params, loss = problem
    lowest: list[float] = []
    settings = {"history_size": HISTORY, "line_search_fn": "strong_wolfe", **options}
    optimizer = make(params, max_iter=calls, max_eval=calls, tolerance_grad=0, tolerance_change=0, **settings)

    def closure() -> Any:
        if len(lowest) == calls:
            raise _Enough
        optimizer.zero_grad()
        value = loss()
        value.backward()
        lowest.append(min([value.item(), *lowest[-1:]]))
        return value

    try:
        while len(lowest) < calls:
            before = len(lowest)
            optimizer.step(closure)  # pyright: ignore[reportArgumentType, reportCallIssue]
            if len(lowest) <= before + 1:  # it only looks at the point where it is
                break
    except (_Enough, IndexError):  # torch's search raises IndexError where a trial is not finite
        pass
    return lowest + lowest[-1:] * (calls - len(lowest))


def ratios(name: str, seed: int, calls: list[int], ours: Any = signedstep.LBFGS) -> list[float]:
    """Lowest loss, ours over torch's, after each number of calls; a billionth of the first loss counts as nothing."""
    mine, theirs = (trace(PROBLEMS[name](seed), make, max(calls)) for make in (ours, torch.optim.LBFGS))
    zero = 1e-9 * theirs[0]
    return [(mine[n - 1] + zero) / (theirs[n - 1] + zero) for n in calls]


def _standardised(X: Any) -> Tensor:
    X = torch.as_tensor(X, dtype=torch.float64)
    return (X - X.mean(0)) / (X.std(0) + 1e-9)


def _network(seed: int, *widths: int) -> nn.Sequential:
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    for i, o in pairwise(widths):
        layer = nn.Linear(i, o, dtype=torch.float64)
        for p in layer.parameters():
            nn.init.uniform_(p, -(i**-0.5), i**-0.5, generator=generator)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def _regression(data: tuple[Any, Any], *hidden: int, decay: float = 0.0) -> Callable[[int], Problem]:
    X, y = _standardised(data[0]), _standardised(data[1])[:, None]
    return _training(X, lambda out: 0.5 * nn.functional.mse_loss(out, y), (X.shape[1], *hidden, 1), decay)


def _classification(data: tuple[Any, Any], *hidden: int, decay: float = 0.0) -> Callable[[int], Problem]:
    X, y = _standardised(data[0]), torch.as_tensor(data[1], dtype=torch.int64)
    widths = (X.shape[1], *hidden, int(y.max()) + 1)
    return _training(X, lambda out: nn.functional.cross_entropy(out, y), widths, decay)


def _training(X: Tensor, measure: Callable, widths: tuple[int, ...], decay: float) -> Callable[[int], Problem]:
    def problem(seed: int) -> Problem:
        model = _network(seed, *widths)
        params: list[Tensor] = list(model.parameters())
        return params, lambda: measure(model(X)) + decay * sum((p.square().sum() for p in params), torch.zeros(()))

    return problem


def _logistic(data: tuple[Any, Any], decay: float) -> Callable[[int], Problem]:
    """Two classes as one number, with no regularisation to speak of: badly conditioned."""
    X, sign = _standardised(data[0]), 2.0 * torch.as_tensor(data[1], dtype=torch.float64)[:, None] - 1
    return _training(X, lambda out: nn.functional.softplus(-sign * out).mean(), (X.shape[1], 1), decay)


def _factorisation(seed: int) -> Problem:
    """A 40 x 30 matrix of rank 5, half of it seen, from random factors."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    A = normal(40, 5) @ normal(5, 30) + 0.1 * normal(40, 30)
    seen = torch.rand(40, 30, generator=generator, dtype=torch.float64) < 0.5
    U, V = (0.3 * normal(40, 5)).requires_grad_(), (0.3 * normal(5, 30)).requires_grad_()
    return [U, V], lambda: (U @ V - A)[seen].square().mean() + 1e-3 * (U.square().mean() + V.square().mean())


def _sine() -> tuple[Tensor, Tensor]:
    x = torch.linspace(-3, 3, 100, dtype=torch.float64)[:, None]
    return x, torch.sin(2 * x[:, 0]) + 0.3 * x[:, 0]


def _bundled(load: Callable[..., Any], rows: int | None = None) -> tuple[Any, Any]:
    X, y = load(return_X_y=True)
    return X[:rows], y[:rows]


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "diabetes, linear": _regression(_bundled(datasets.load_diabetes)),
    "diabetes, network": _regression(_bundled(datasets.load_diabetes), 10),
    "breast cancer, logistic": _logistic(_bundled(datasets.load_breast_cancer), 1e-5),
    "wine, network": _classification(_bundled(datasets.load_wine), 10, decay=1e-4),
    "iris, network": _classification(_bundled(datasets.load_iris), 10, 10, decay=1e-4),
    "digits, softmax": _classification(_bundled(datasets.load_digits, 500), decay=1e-4),
    "digits, network": _classification(_bundled(datasets.load_digits, 500), 20, decay=1e-4),
    "friedman, network": _regression(datasets.make_friedman1(200, noise=0.5, random_state=0), 15, 15),
    "sine, network": _regression(_sine(), 20, 20),
    "matrix factorisation": _factorisation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--calls", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--method", default="lbfgs", help="any method of signedstep.methods()")
    parser.add_argument("--control", action="store_true", help="compare torch's with itself instead")
    options = parser.parse_args()

    def ours(params: list[Tensor], **settings: Any) -> torch.optim.Optimizer:
        return signedstep.SecondOrder(params, options.method, **settings)

    make, label = (perturbed, "torch.optim.LBFGS, start moved by 1e-15") if options.control else (ours, options.method)
    print(f"{label}: lowest loss over torch.optim.LBFGS's, mean of {options.seeds} seeds (worse, better by over 1%)")
    print(f"{'problem':<26}" + "".join(f"{f'{n} calls':>20}" for n in options.calls))
    runs = {name: [ratios(name, seed, options.calls, make) for seed in range(options.seeds)] for name in PROBLEMS}
    runs["all"] = [run for name in PROBLEMS for run in runs[name]]
    for name, rows in runs.items():
        print(f"{name:<26}" + "".join(f"{_summary(column):>20}" for column in zip(*rows, strict=True)))
    apart = (max(abs(ratio - 1) for ratio in column) for column in zip(*runs["all"], strict=True))
    print(f"{'farthest from 1':<26}" + "".join(f"{most:>20.1e}" for most in apart))


def perturbed(params: list[Tensor], **settings: Any) -> torch.optim.Optimizer:
    """torch's own, from a start that differs in the last digit."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in params:
            p.mul_(1 + 1e-15 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return torch.optim.LBFGS(params, **settings)


def _summary(column: tuple[float, ...]) -> str:
    mean = math.exp(sum(map(math.log, column)) / len(column))
    return f"{mean:.4f} ({sum(r > 1.01 for r in column)}, {sum(r < 1 / 1.01 for r in column)})"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
