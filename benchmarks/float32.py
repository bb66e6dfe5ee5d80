"""How low `auto` gets in float32, next to the loss at which rounding ends everything.

That is the lowest loss of SciPy's L-BFGS-B, which computes in float64 and asks the same float32 problem: medians over
the starts of networks, autoencoders and PINNs. Losses below the least normal number of float32 count as that number.
First come the tables of `signedstep bench`, which does the runs; a second call only prints.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import torch

from signedstep.cli import main as signedstep
from signedstep.experiments.bench.results import losses, results
from signedstep.experiments.bench.runs import BenchOutcome
from signedstep.experiments.stats import median
from signedstep.experiments.store import Store

OURS, PEER = "auto", "scipy-lbfgsb"
FAMILIES = "networks,autoencoders,pinns"
LEAST = torch.finfo(torch.float32).tiny


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("dev", "held-out"), default="held-out")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=Path("results/float32"))
    arguments = parser.parse_args()
    folder = arguments.results / arguments.half
    bench = ["bench", "--dtype", "float32", "--half", arguments.half, "--family", FAMILIES, "--no-report"]
    code = signedstep([*bench, "--seeds", str(arguments.seeds), "--solvers", OURS, "torch-lbfgs", PEER,
                       "--results", str(folder)])  # fmt: skip
    if code:
        return code
    found = results(Store(folder / "runs", BenchOutcome).outcomes())

    def lowest(problem: str, solver: str) -> float:
        return max(LEAST, median(list(losses(found.outcomes[problem][solver], found.budget).values())))

    problems = [problem for problem, tried in found.outcomes.items() if OURS in tried and PEER in tried]
    ratios = {problem: lowest(problem, OURS) / lowest(problem, PEER) for problem in problems}
    middle = median(list(ratios.values()))
    print(f"\nLowest loss of {OURS} over that of {PEER} on {len(ratios)} problems: median {middle:.2f}")
    for problem in sorted(ratios, key=lambda name: -ratios[name])[:5]:
        print(f"{ratios[problem]:8.2f}  {problem}, {lowest(problem, OURS):.3g} to {lowest(problem, PEER):.3g}")
    for ended, count in Counter(outcome.ended for outcome in found.runs(OURS)).most_common():
        print(f"{count:4} runs of {OURS}: {ended}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
