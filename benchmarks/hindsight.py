"""Why `mix` works: how well each of its experts, their average and their weighted mean predict the next step.

The error of a model H is |s - H y| / |s| on the pair of each step, before the pair is learned. Shown are medians of its
logarithm to the base 10 over the steps of a run, and the regret of the weights: the mean difference to the best single
expert in hindsight. Runs are those of `mix` itself; problems and starts those of `signedstep bench --half dev`.
"""

import argparse
import os

import numpy as np
import torch

from signedstep.alongline import Raw
from signedstep.curvature import Mix, Mixing
from signedstep.curvature.pairs import Grams, NewPair
from signedstep.engine import Engine, Tolerances
from signedstep.experiments.bench.problems import TRAINING, chosen, unavailable
from signedstep.experiments.problems import Place
from signedstep.linesearch import Wolfe
from signedstep.space import Space
from signedstep.status import Status
from signedstep.tensors import TorchObjective


class Watched(Mix):
    """`Mix` that writes down what every expert, their mean and the mix itself got wrong."""

    def __init__(self, m: int, mixing: Mixing, space: Space):
        super().__init__(m, mixing, space)
        self.errors: list[np.ndarray] = []

    def adopt(self, pair: NewPair, grams: Grams, gamma: float) -> None:
        if self.learned:
            C = self._errors(pair)
            means = [np.full(len(C), 1 / len(C)), self.weights]
            squares = [*C.diagonal(), *(mean @ C @ mean for mean in means)]
            self.errors.append(np.log10(np.maximum(squares, 1e-16)) / 2)
        super().adopt(pair, grams, gamma)

    def _errors(self, pair: NewPair) -> np.ndarray:
        """The products of the errors s - H_i y of all experts."""
        (Ss, Ys, Sy, Yy), h = pair.columns[:, :-1], self._h
        Zs, Zy = np.concatenate((Ss, Ys)), np.concatenate((Sy, Yy))
        K = np.stack([np.concatenate(self._act(Sy, Yy, one)) for one in np.eye(len(h))], axis=1)
        along, hy = h * pair.sy + Zs @ K, h[:, None] * (0.5 * pair.yy * h + Zy @ K)
        return 1 - along - along[:, None] + hy + hy.T + K.T @ self.pairs.ZZ @ K


def watched(objective: TorchObjective, start: torch.Tensor, evals: int) -> np.ndarray:
    """Logarithms of the errors, a row for each step."""
    space = Space()
    model = Watched(20, Mixing(), space)
    search = Raw(Wolfe(1e-4, 0.999, "weak"), delta=1e-10, space=space)
    engine = Engine(objective, objective(start), model, search, space, Tolerances(gtol=0))
    while engine.status is Status.RUNNING and engine.evals < evals:
        engine.step(evals - engine.evals)
    return np.array(model.errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evals", type=int, default=300)
    parser.add_argument("--unknowns", type=int, default=1000, help="only problems up to this size")
    args = parser.parse_args()
    torch.set_num_threads(1)
    place = Place(os.environ.get("SIGNEDSTEP_DATA"))
    problems = [problem for problem in chosen(TRAINING, "dev") if problem.unknowns <= args.unknowns]
    missing = unavailable(problems, place)
    names = ["lbfgs", *(f"flip {outside:g}/{floor:g}" for outside, floor in Mixing().flips), "average", "mix"]
    print(f"{'':44}" + "".join(f"{name:>16}" for name in names) + f"{'regret':>10}")
    medians = []
    for problem in problems:
        if problem in missing:
            continue
        ready = problem.build(place, torch.float64, 0)
        objective = TorchObjective(ready.value_and_gradient, True, (), tuple(ready.start.shape))
        errors = watched(objective, ready.start, args.evals)
        if not len(errors):
            continue
        experts = errors[:, :-2]
        regret = float(errors[:, -1].mean() - experts.mean(axis=0).min())
        medians.append([*np.median(errors, axis=0), regret])
        print(f"{problem.name:44}" + "".join(f"{value:16.2f}" for value in medians[-1][:-1]) + f"{regret:10.2f}")
    print(f"{'median of all':44}" + "".join(f"{v:16.2f}" for v in np.median(medians, axis=0)[:-1]), end="")
    print(f"{np.median([row[-1] for row in medians]):10.2f}")


if __name__ == "__main__":
    main()
