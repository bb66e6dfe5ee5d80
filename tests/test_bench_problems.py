"""The problems of the benchmark: what they promise, their derivatives, and the halves."""

import hashlib
import json
from contextlib import suppress

import numpy as np
import pytest
import torch

from signedstep.experiments.bench.meter import BudgetSpent, Meter, Objective, by_autograd
from signedstep.experiments.bench.problems import (
    FAMILIES,
    HALVES,
    UNSEEN,
    all_problems,
    chosen,
    classical_functions,
    half,
    named,
    package_missing,
    unavailable,
)
from signedstep.experiments.bench.problems.layers import Layers
from signedstep.experiments.bench.solvers import missing, solver
from signedstep.experiments.problems import Place

OFFLINE = {"heart", "breast_cancer", "digits", None}
TORCH_FAMILIES = [name for name, family in FAMILIES.items() if family.package is None]
HERE = [p for name in TORCH_FAMILIES for p in all_problems(name) if p.data in OFFLINE and p.unknowns < 30_000]


@pytest.mark.parametrize("problem", HERE, ids=lambda problem: problem.name)
def test_problems_have_the_size_they_say_and_true_derivatives(problem):
    objective = problem.build(Place(), torch.float64, 0)
    assert objective.start.shape == (problem.unknowns,)
    assert objective.start.dtype == torch.float64
    f, g = objective.value_and_gradient(objective.start)
    assert np.isfinite(f)
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(problem.unknowns, generator=generator, dtype=torch.float64)
    v *= 1e-6 * (1 + objective.start.abs()) / v.abs().max()
    (up, g_up), (down, g_down) = (objective.value_and_gradient(objective.start + sign * v) for sign in (1, -1))
    slope = (up - down) / 2
    assert slope == pytest.approx((g @ v).item(), rel=1e-4, abs=1e-13 * (1 + abs(f)))
    assert objective.hessp is not None
    if "relu" not in problem.name:  # which has kinks
        Hv = objective.hessp(objective.start, v)
        change = (g_up - g_down) / 2
        assert (Hv - change).norm() <= 1e-3 * change.norm() + 1e-13 * g.norm()


@pytest.mark.parametrize("family", TORCH_FAMILIES)
def test_float32_and_seeds(family):
    for problem in [p for p in HERE if p.family == family][:4]:
        one, other = problem.build(Place(), torch.float32, 0), problem.build(Place(), torch.float64, 0)
        f, g = one.value_and_gradient(one.start)
        assert g.dtype == torch.float32
        assert f == pytest.approx(other.value_and_gradient(other.start)[0], rel=1e-4)
        again, seed1 = (problem.build(Place(), torch.float64, seed).start for seed in (0, 1))
        assert torch.equal(again, other.start)
        assert torch.equal(seed1, other.start) is not problem.seeded


@pytest.mark.parametrize(("directions", "second"), [((), ()), ((0, 1), ()), ((0, 1), (0,)), ((1,), (1,))])
def test_jets_are_the_derivatives_of_the_network(directions, second):
    layers = Layers((2, 6, 5, 1))
    x = layers.start(0, torch.float64)
    X = torch.linspace(-1, 1, 14, dtype=torch.float64).view(7, 2).requires_grad_(True)

    def by(u, i):
        return torch.autograd.grad(u.sum(), X, create_graph=True)[0][:, i : i + 1]

    u = layers(x, X)
    first = {i: by(u, i) for i in directions}
    expected = [u, *first.values(), *(by(first[i], i) for i in second)]
    for found, wanted in zip(layers.jets(x, X, directions, second), expected, strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_halves_are_halves_of_like_size(family):
    parts = {which: [p for p in all_problems(family) if half(family)[p.name] == which] for which in HALVES}
    assert {p.name for part in parts.values() for p in part} == {p.name for p in all_problems(family)}
    assert 0 <= len(parts["dev"]) - len(parts["held-out"]) <= 1
    for one, other in zip(*(sorted(p.unknowns for p in part) for part in parts.values()), strict=False):
        assert max(one, other) <= 5 * min(one, other)


def test_what_is_run_are_the_halves_without_hollow_problems_and_unseen_functions_are_of_no_size_in_dev():
    families = list(FAMILIES)
    dev, held_out, unseen = (chosen(families, which) for which in (*HALVES, UNSEEN))
    assert {p.name for p in chosen(families, "all")} == {p.name for p in (*dev, *held_out)}
    hollow = {p.name for family in families for p in all_problems(family) if p.hollow}
    assert hollow == {"cutest-large/COATING-n1000", "cutest-large/VANDANMSLS-n1000"}
    assert hollow.isdisjoint(p.name for p in (*dev, *held_out))
    developed = {p.short.rpartition("-n")[0] for p in (*dev, *(named(name) for name in hollow)) if "cutest" in p.family}
    for problem in held_out:
        seen = "cutest" in problem.family and problem.short.rpartition("-n")[0] in developed
        assert (problem in unseen) is not seen


def test_the_split_is_the_same_everywhere_and_depends_on_names_and_sizes_only():
    """If this changes, problems were added or renamed, and held-out results are to be made anew."""
    digests = {
        family: hashlib.sha256(json.dumps(half(family), sort_keys=True).encode()).hexdigest()[:12]
        for family in FAMILIES
    }
    assert digests == SPLIT


SPLIT = {
    "networks": "d5b174e330a8",
    "autoencoders": "415c195a837d",
    "pinns": "0234a0c5cf2d",
    "factorisation": "e38f7b9cc6fd",
    "logistic": "7c51ca3dd025",
    "classical": "00272dd1d409",
    "cutest": "ab44e21b9c9f",
    "cutest-large": "5655385ac75a",
}


def test_problems_are_found_by_name_and_those_without_data_are_told(monkeypatch, tmp_path):
    problem = all_problems("networks")[0]
    assert named(problem.name) is problem
    monkeypatch.setenv("SIGNEDSTEP_DATA", str(tmp_path))
    absent = unavailable(all_problems("networks"), Place())
    assert {p.data for p in absent}.isdisjoint(OFFLINE)


SAME = {
    "BARD-n3": "bard",
    "BEALE-n2": "beale",
    "BIGGS6-n6": "biggs-exp6",
    "BOX3-n3": "box-3d",
    "BROWNDEN-n4": "brown-dennis",
    "OSBORNEA-n5": "osborne-1",
    "VARDIM-n200": "variably-dimensioned",
}
"""Problems of CUTEst that are also in the set of Moré, Garbow and Hillstrom, which is written independently."""


@pytest.mark.parametrize("short", SAME)
def test_problems_of_cutest_are_those_of_the_literature(short):
    if package_missing("cutest"):
        pytest.skip("sif2jax is not installed")
    problem = named(f"cutest/{short}")
    objective = problem.build(Place(), torch.float64, 0)
    assert objective.hessp is not None
    (twin,) = [p for p in classical_functions.problems() if p.name == SAME[short]]
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        x = objective.start * (1 + 0.1 * torch.randn(problem.unknowns, generator=generator, dtype=torch.float64))
        v = torch.randn(problem.unknowns, generator=generator, dtype=torch.float64)
        wanted = by_autograd(twin.fun, x)
        f, g = objective.value_and_gradient(x)
        f_wanted, g_wanted = wanted.value_and_gradient(x)
        assert f == pytest.approx(f_wanted, rel=1e-9)
        torch.testing.assert_close(g, g_wanted, rtol=1e-7, atol=1e-9 * float(g_wanted.norm()))
        assert wanted.hessp is not None
        Hv = wanted.hessp(x, v)
        torch.testing.assert_close(objective.hessp(x, v), Hv, rtol=1e-6, atol=1e-8 * float(Hv.norm()))


@pytest.mark.parametrize("problem", chosen(["cutest", "cutest-large"], "all"), ids=lambda problem: problem.name)
def test_problems_of_cutest_have_true_gradients_and_unknowns_that_matter(problem):
    """A problem made with one of two sizes that belong together reads beyond its unknowns: its gradient is wrong."""
    if package_missing("cutest"):
        pytest.skip("sif2jax is not installed")
    evaluated, start, _ = problem.build(Place(), torch.float64, 0)
    generator = torch.Generator().manual_seed(0)
    v = (1 + start.abs()) * (2 * torch.rand(problem.unknowns, generator=generator, dtype=torch.float64) - 1)
    slope = float(evaluated(start)[1] @ v)
    seen = [(evaluated(start + t * v)[0] - evaluated(start - t * v)[0]) / (2 * t) for t in (1e-4, 1e-6, 1e-8)]
    assert min(abs(each - slope) for each in seen) <= 1e-2 * abs(slope)
    if problem.family == "cutest-large":
        looks = [evaluated(start + size * v)[1] for size in (1e-3, 0.1, 1.0)]
        assert torch.stack(looks).ne(0).any(0).double().mean() > 0.5


@pytest.mark.parametrize("name", ["optax-lbfgs", "optimistix-lbfgs", "torch-lbfgs"])
def test_all_solvers_see_the_same_values_of_cutest_in_float32(name):
    chosen = solver(name)
    if package_missing("cutest") or missing(chosen):
        pytest.skip("sif2jax or the solver is not installed")
    objective = named("cutest/BOX3-n3").build(Place(), torch.float32, 0)
    assert objective.hessp is not None
    seen = []

    def watched(x):
        seen.append((x.clone(), objective.hessp(x, x), *objective.value_and_gradient(x)))
        return seen[-1][-2:]

    with suppress(Exception, BudgetSpent):
        chosen.solve(Meter(Objective(watched, objective.start), 20), 10)
    assert len(seen) == 20
    for x, Hx, f, g in seen:
        f_here, g_here = objective.value_and_gradient(x)
        assert f == f_here
        assert torch.equal(g, g_here)
        assert torch.equal(Hx, objective.hessp(x, x))


def test_cutest_has_the_sizes_it_says():
    if package_missing("cutest"):
        pytest.skip("sif2jax is not installed")
    for family, least in (("cutest", 180), ("cutest-large", 80)):
        problems = all_problems(family)
        assert len(problems) >= least
        for problem in problems[::37]:
            objective = problem.build(Place(), torch.float32, 0)
            f, g = objective.value_and_gradient(objective.start)
            assert (g.dtype, g.shape) == (torch.float32, (problem.unknowns,))
            assert np.isfinite(f)
    assert max(p.unknowns for p in all_problems("cutest")) <= 200
    assert all(900 <= p.unknowns <= 1100 for p in all_problems("cutest-large"))
