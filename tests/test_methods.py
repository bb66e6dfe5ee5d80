"""Names of methods: every pair of curvature and globalization is either listed and runs, or is refused and told why."""

from itertools import product

import pytest
import torch

import signedstep
from cases import START, rosenbrock
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
