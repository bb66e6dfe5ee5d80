"""Names of methods: every pair of curvature and globalization is either listed and runs, or is refused and told why."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
import torch

import signedstep
from cases import (
    METHODS,
    SHOWN_TO_FAIL,
    START,
    assert_same_run,
    bowl,
    rosenbrock,
    rosenbrock_gradient,
)
from signedstep import minimize
from signedstep.catalogue import CURVATURES, GLOBALIZATIONS
from signedstep.methods import build
from signedstep.region import TrustRegion
from signedstep.space import Space

PAIRS = [f"{model}/{how}" for model, how in product(CURVATURES, GLOBALIZATIONS)]


@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_runs_or_says_why_not(pair):
    model, how = pair.split("/")
    if pair not in signedstep.methods():
        with pytest.raises(
            ValueError, match=f"method '{pair}': {model} .*'{how}' needs .*valid are {model}/"
        ) as refused:
            signedstep.minimize(rosenbrock, torch.tensor(START), method=pair)
        valid = str(refused.value).partition("valid are ")[2].split(", ")
        assert set(valid) == {name for name in signedstep.methods() if name.startswith(f"{model}/")}
        with pytest.raises(ValueError, match=f"method '{pair}'"):
            signedstep.method(pair)
    elif CURVATURES[model].needs_parts:
        with pytest.raises(TypeError, match=r"needs .*ModuleLoss"):
            signedstep.minimize(rosenbrock, torch.tensor(START), method=pair)
    else:
        result = signedstep.minimize(rosenbrock, torch.tensor(START), method=pair, options={"maxiter": 3})
        assert result.nit > 0


@pytest.mark.parametrize("pair", PAIRS)
def test_the_torch_front_takes_a_pair_or_says_why_not(pair):
    model, _ = pair.split("/")
    parameter = torch.tensor(START, requires_grad=True)
    if pair not in signedstep.methods() or CURVATURES[model].needs_hessian:
        with pytest.raises(ValueError, match=r"needs Hessians|needs eigenvalues"):
            signedstep.SecondOrder([parameter], pair)
        return
    optimizer = signedstep.SecondOrder([parameter], pair)
    if CURVATURES[model].needs_parts:
        with pytest.raises(TypeError, match="ModuleLoss"):
            optimizer.step(lambda: rosenbrock(parameter))
        return
    if CURVATURES[model].needs_products:
        with pytest.raises(RuntimeError, match="only returns the loss"):
            optimizer.step(lambda: closure(parameter))
    optimizer.step(lambda: rosenbrock(parameter))
    assert rosenbrock(parameter).item() < rosenbrock(torch.tensor(START)).item()


def closure(x):
    x.grad = None
    value = rosenbrock(x)
    value.backward()
    return value


def test_some_pair_is_refused():
    assert 0 < len([pair for pair in PAIRS if pair not in signedstep.methods()]) < len(PAIRS)


def test_regions_have_no_curvature_condition():
    """c1 of a region is a part of the predicted decrease: it may be above the c2 of a search that there is not."""
    parts = build("newton/trust", torch.zeros(2), Space(), {"c1": 0.95})
    assert isinstance(parts.globalization, TrustRegion)
    assert parts.globalization.c1 == 0.95
    with pytest.raises(ValueError, match="0 < c1 <= c2 < 1"):
        build("newton/flip", torch.zeros(2), Space(), {"c1": 0.95})


def test_names_do_not_depend_on_case_and_none_means_auto():
    options = {"maxiter": 5}
    assert_same_run(*(minimize(rosenbrock, START, method=name, options=options) for name in ("LSR1/Flip", "lsr1/flip")))
    assert_same_run(*(minimize(rosenbrock, START, method=name, options=options) for name in (None, "auto")))


@pytest.mark.parametrize("name", ["nope", "", "lsr1/", "/flip", "lsr1/nope", "lsr1/flip/flip", "l-sr1", " lsr1"])
@pytest.mark.parametrize("use", [lambda name: minimize(bowl, [3.0], method=name), signedstep.method])
def test_unknown_methods_are_refused_with_the_valid_names(name, use):
    with pytest.raises(ValueError, match="unknown method") as refused:
        use(name)
    words = str(refused.value)
    assert repr(name) in words
    assert all(part in words for full in METHODS for part in full.split("/"))


def test_methods_that_are_not_names_are_refused():
    other: Any = scipy.optimize.minimize
    with pytest.raises(TypeError, match="method must be a name"):
        minimize(bowl, [3.0], method=other)


def test_methods_are_described():
    assert {"auto", "gd", "bfgs", "sr1", "lbfgs", "lsr1", "lsr1/wolfe+-", "lsr1/flip"} <= set(METHODS)
    assert all(text and "\n" not in text for text in signedstep.methods().values())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_on_rosenbrock(method):
    result = minimize(rosenbrock, START, jac=rosenbrock_gradient, method=method, options={"maxiter": 200})
    assert result.fun < rosenbrock(START)
    assert math.isfinite(result.fun)
    assert np.isfinite(result.x).all()
    if not method.startswith("gd") and method not in SHOWN_TO_FAIL:  # slow, and what the paper shows to fail
        assert result.success


@pytest.mark.parametrize("short", ["auto", "gd", "bfgs", "sr1", "lbfgs", "lsr1"])
def test_short_names_stand_for_full_ones(short, capsys):
    short_run = minimize(rosenbrock, START, jac=rosenbrock_gradient, method=short, options={"disp": 1, "maxiter": 30})
    full = capsys.readouterr().out.partition("Method: ")[2].split()[0]
    assert full in METHODS
    assert "/" in full
    assert_same_run(
        short_run, minimize(rosenbrock, START, jac=rosenbrock_gradient, method=full, options={"maxiter": 30})
    )


def test_auto_takes_a_globalization():
    assert minimize(bowl, START, method="auto/flip").success
