"""Trust region and cubic regularization on the engine: the bound, refused trials and the hard case."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

import signedstep
from conftest import evaluated, indefinite, network, path, rosenbrock
from signedstep.curvature import LSR1, SR1, Curvature, Gamma
from signedstep.engine import Engine, Tolerances
from signedstep.globalization import Scale
from signedstep.methods import build
from signedstep.objective import Point
from signedstep.plane import dogleg, subspace
from signedstep.region import Cubic, Region, Trial, TrustRegion
from signedstep.space import Space
from signedstep.spectrum import Spectrum
from signedstep.status import Status

REGIONS = ["trust", "dogleg", "subspace", "cubic"]
Dogleg, Subspace = partial(TrustRegion, rule=dogleg), partial(TrustRegion, rule=subspace)
KINDS = pytest.mark.parametrize("how", [TrustRegion, Dogleg, Subspace, Cubic], ids=REGIONS)


class Fixed(SR1):
    """A model that is what it was told to be."""

    def __init__(self, w: list[float]):
        super().__init__(Gamma())
        self.w = w

    def start(self, objective, at: Point) -> None:
        super().start(objective, at)
        self.H, self.learned = torch.diag(1 / torch.tensor(self.w, dtype=torch.float64)), 1


def proposed(how: Region, model: Curvature, fun, x: list[float], scale: Scale | None = None):
    at = evaluated(fun, torch.tensor(x, dtype=torch.float64))
    model.start(None, at)  # type: ignore[arg-type]
    return at, how.step(lambda z: evaluated(fun, z), at, model, scale or Scale())


@KINDS
def test_the_hard_case_leaves_the_saddle(how):
    """The gradient has no part along the negative eigenvector; the step has."""
    fun = lambda x: x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2 / 2  # noqa: E731
    at, step = proposed(how(Space()), Fixed([-1.0, 1.0]), fun, [0.0, 0.5], Scale(bound=1.0))
    assert step.point is not None
    assert abs(float(step.point.x[0])) > 0.1
    assert step.point.f < at.f
    assert step.alpha == 1


def test_limited_models_lift_eigenvectors_that_the_gradient_does_not_meet():
    points = path(indefinite(8), 8, 3)
    model = LSR1(5, Gamma("norm"), Space())
    model.start(None, points[0])  # type: ignore[arg-type]
    for old, new in itertools.pairwise(points):
        assert model.update(old, new)
    _, V = torch.linalg.eigh(model.matrix())
    g = points[-1].g - V[:, 0] * (V[:, 0] @ points[-1].g)  # orthogonal to the lowest eigenvector
    seen = model.spectrum(g)
    lowest = int(np.argmin(seen.w))
    assert seen.w[lowest] < 0
    assert abs(seen.c[lowest]) < 1e-10
    p = seen.lift(np.eye(len(seen.w))[lowest])
    assert abs(float(p @ V[:, 0])) == pytest.approx(1)


def test_the_complement_is_never_the_lowest_where_that_is_negative():
    """What the hard case relies on: gamma, the eigenvalue of all that is not listed, stays positive."""
    fun, x0 = network()
    space = Space()
    parts = build("lsr1/trust", x0, space, {"history_size": 4})
    objective = lambda x: evaluated(fun, x)  # noqa: E731
    engine = Engine(objective, objective(x0), parts.curvature, parts.globalization, space, Tolerances())
    negative = 0
    for _ in range(40):
        engine.step()
        seen = parts.curvature.spectrum(engine.at.g)
        negative += seen.w.min() < 0
        assert parts.curvature.gamma > 0  # type: ignore[attr-defined]
    assert negative


@KINDS
@pytest.mark.parametrize("unit_f", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("unit_x", [1e-6, 1.0, 1e6])
def test_the_first_bound_has_the_units_of_the_problem(how, unit_f, unit_x):
    fun = lambda x: unit_f * ((x / unit_x) ** 2 * torch.tensor([1.0, 5.0])).sum()  # noqa: E731
    w = [2 * unit_f / unit_x**2, 10 * unit_f / unit_x**2]
    _at, step = proposed(how(Space()), Fixed(w), fun, [3 * unit_x, unit_x])
    assert step.point is not None
    expected = proposed(how(Space()), Fixed([2.0, 10.0]), lambda x: (x**2 * torch.tensor([1.0, 5.0])).sum(), [3.0, 1.0])
    assert expected[1].point is not None
    assert (step.point.x / unit_x).tolist() == pytest.approx(expected[1].point.x.tolist())


@KINDS
def test_a_blind_model_steps_down_the_gradient_by_one_or_as_far_as_bold(how):
    fun, x0 = indefinite(4), [0.3, 0.2, -0.1, 0.4]
    for rate in (1.0, 0.1):
        region = how(Space())
        region.rate = rate
        at, step = proposed(region, SR1(Gamma("norm")), fun, x0)
        assert step.point is not None
        p = step.point.x - at.x
        assert float(p.norm()) == pytest.approx(rate)
        assert step.cosine == pytest.approx(1)


def test_the_cubic_step_has_a_length_to_go_by():
    """A learned eigenvalue of -1e8 with sigma = 1 means a step of 1e8; sigma is raised to four times the last step."""
    fun = lambda x: (x**2).sum()  # noqa: E731
    scale = Scale(bound=1.0, length=0.1)
    at, step = proposed(Cubic(Space()), Fixed([-1e8, 2.0]), fun, [1.0, 1.0], scale)
    tried = step.point or step.refused
    assert tried is not None
    assert float((tried.x - at.x).norm()) == pytest.approx(0.4)
    _, free = proposed(Cubic(Space()), Fixed([2.0, 2.0]), fun, [1e-3, 1e-3], scale)
    assert free.scale.bound <= 1.0, "a step that is short anyway is left alone"
    _, first = proposed(Cubic(Space()), Fixed([2.0, 2.0]), fun, [1e-3, 1e-3], Scale(bound=1.0))
    assert first.point is not None
    at, positive = proposed(Cubic(Space()), Fixed([2.0, 2.0]), fun, [1.0, 1.0], scale)
    assert positive.point is not None
    assert float((positive.point.x - at.x).norm()) > 0.4, "a model that knows how far to go is left alone"


def test_the_radius_follows_the_ratio():
    """Model and function are known, so the ratio is: a true model doubles the radius, a false one halves it."""
    bowl = lambda x: (x**2).sum()  # noqa: E731
    for curvature, ratio, expected in [(2.0, 1.0, 2.0), (-7.0, 0.45 / 0.78, 1.0), (-60.0, 9 / 40, 0.5)]:
        _, step = proposed(TrustRegion(Space()), Fixed([curvature] * 2), bowl, [5.0, 0.0], Scale(bound=1.0))
        assert step.status is Status.RATIO, ratio
        assert step.scale.bound == pytest.approx(expected)
    _, step = proposed(TrustRegion(Space()), Fixed([-1.0] * 2), bowl, [0.3, 0.0], Scale(bound=1.0))
    assert step.point is None
    assert step.retry
    assert step.scale.bound == pytest.approx(0.3)  # the minimum of the parabola
    assert step.refused is not None
    assert float(step.refused.x[0]) == pytest.approx(-0.7)


@pytest.mark.parametrize("how", REGIONS)
def test_a_refused_trial_teaches_the_model(how):
    """One trial that overshoots is one pair: the second step of the same iteration knows the true curvature."""
    fun = lambda x: 50 * x[0] ** 2  # noqa: E731
    x0 = torch.tensor([0.1], dtype=torch.float64)
    space = Space()
    parts = build(f"sr1/{how}", x0, space, {})
    objective = lambda x: evaluated(fun, x)  # noqa: E731
    engine = Engine(objective, objective(x0), parts.curvature, parts.globalization, space, Tolerances())
    record = engine.step()
    assert record.evals == 2
    assert parts.curvature.matrix().item() == pytest.approx(100)
    assert engine.at.f < 0.3 * 0.5


@pytest.mark.parametrize("how", REGIONS)
@pytest.mark.parametrize("model", ["gd", "bfgs", "sr1", "lbfgs", "lsr1"])
@pytest.mark.parametrize("wall", ["nan", "raise"])
def test_walls_only_shorten_steps(how, model, wall):
    def fun(x: Tensor) -> Tensor:
        if float(x.detach()[0]) <= 0 and wall == "raise":
            raise ArithmeticError("beyond the wall")
        return (x - torch.log(x)).sum()

    x0 = torch.tensor([0.05, 3.0], dtype=torch.float64)
    result = signedstep.minimize(fun, x0, method=f"{model}/{how}", options={"maxiter": 500})
    assert result.success
    assert result.x.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)


@pytest.mark.parametrize("how", REGIONS)
def test_no_finite_trial_is_an_honest_end(how):
    x0 = torch.tensor([1.0, 2.0], dtype=torch.float64)
    fun = lambda x: (x**2).sum() if torch.equal(x.detach(), x0) else (x * math.nan).sum()  # noqa: E731
    result = signedstep.minimize(fun, x0, method=f"lsr1/{how}")
    assert result.status is Status.WALL
    assert not result.success
    assert torch.equal(result.x, x0)


@KINDS
def test_a_spectrum_of_nan_falls_back_to_the_gradient(how):
    class Blind(SR1):
        learned = 1

        def spectrum(self, g: Tensor) -> Spectrum:
            return Spectrum(np.array([math.nan]), np.array([1.0]), lambda a: g * math.nan)

    region = how(Space())
    _, step = proposed(region, Blind(Gamma("norm")), indefinite(3), [0.5, 0.2, 0.1])
    assert step.point is not None
    assert step.cosine == pytest.approx(1)


@pytest.mark.parametrize("how", REGIONS)
def test_far_beyond_rounding_it_converges_by_slopes(how):
    """With f = 1e6 + ..., differences of f vanish long before the gradient does."""
    fun = lambda x: 1e6 + ((x - 1) ** 2 * torch.tensor([1.0, 20.0, 3.0])).sum() + 0.1 * ((x - 1) ** 4).sum()  # noqa: E731
    x0 = torch.tensor([3.0, -2.0, 0.5], dtype=torch.float64)
    result = signedstep.minimize(fun, x0, method=f"bfgs/{how}", options={"gtol": 1e-9})
    assert result.success
    assert Status.APPROXIMATE_RATIO in set(result.history.status)


@pytest.mark.parametrize("how", REGIONS)
def test_a_function_without_a_minimum_is_called_unbounded(how):
    x0 = torch.tensor([1.0, 1.0], dtype=torch.float64)
    result = signedstep.minimize(lambda x: x.sum(), x0, method=f"lbfgs/{how}")
    assert result.status is Status.UNBOUNDED


@pytest.mark.parametrize("method", ["lbfgs/trust", "lsr1/trust", "mix/trust"])
def test_a_refused_trial_that_was_met_leaves_the_old_gradient_known(method, dtype):
    """Its pair is learned, also in a full ring, and the next model needs no further pass over the history."""
    passes = []

    class Watched(Space):
        def inner(self, A, B):
            passes.append(len(B))
            return super().inner(A, B)

        def grams(self, A, V, count):
            passes.append(count)
            return super().grams(A, V, count)

    torch.manual_seed(0)
    n, space = 8, Watched()
    A = torch.randn(n, n, dtype=dtype)
    A = A @ A.T / n + torch.eye(n, dtype=dtype)
    points = [Point(x, float(0.5 * x @ A @ x), A @ x) for x in torch.randn(7, n, dtype=dtype)]
    B = build(method, points[0].x, space, {"history_size": 3}).curvature
    B.start(lambda x: points[0], points[0])
    for old, new in itertools.pairwise(points[:5]):
        B.update(old, new)
    at = points[4]
    B.spectrum(at.g)
    for tried in points[5:]:
        B.meet(at, tried)
        passes.clear()
        order = B.pairs.order.tolist()
        B.learn_from_refused(at, tried)
        assert B.pairs.order.tolist() == [*order[1:], order[0]], "a pair was learned"
        seen = B.spectrum(at.g)
        assert not passes
        exact = torch.linalg.solve(B.matrix(), at.g.double())
        p = seen.lift(-seen.c / seen.w).double()
        assert torch.linalg.norm(p + exact) <= 1000 * torch.finfo(dtype).eps * torch.linalg.norm(exact)


@pytest.mark.parametrize("how", REGIONS)
@pytest.mark.parametrize("model", ["lbfgs", "lsr1", "sr1"])
def test_far_from_the_origin_the_first_step_is_long_enough_to_be_seen(model, how):
    result = signedstep.minimize(
        lambda x: (0.5 * (x - 6e6) ** 2).sum(), torch.tensor([2e6, 4e6]), method=f"{model}/{how}", options={"gtol": 2e3}
    )
    assert result.success


def test_a_step_of_some_units_in_the_last_place_is_tried():
    start = torch.tensor([100.0, 100.0])
    result = signedstep.minimize(
        lambda x: (50 * (x - 100.00005) ** 2).sum(), start, method="newton/trust", options={"gtol": 1e-3}
    )
    assert result.success
    assert not torch.equal(result.x, start)


def test_a_step_whose_cube_overflows():
    result = signedstep.minimize(
        lambda x: (0.5e-50 * x * x).sum(), torch.tensor([1e105, 2e105], dtype=torch.float64), method="newton/cubic"
    )
    assert math.isfinite(result.fun)


@pytest.mark.parametrize("method", ["lsr1/trust", "lsr1/cubic", "sr1/dogleg", "sr1/steihaug"])
def test_a_learning_rate_shortens_every_step_and_changes_no_radius(method):
    """On a quadratic the model knows each step would go all the way; with half the rate half of it is left."""
    x = torch.nn.Parameter(torch.tensor([3.0, -2.0, 1.0], dtype=torch.float64))
    optimizer = signedstep.SecondOrder([x], method, lr=0.5, max_iter=40, max_eval=99, tolerance_change=0)
    for _ in range(3):
        optimizer.step(lambda: 0.5 * (x * x).sum())
    taken = optimizer.history.alpha[optimizer.history.alpha != 0]
    assert (taken == 0.5).all()
    assert float(x.detach().norm()) < 1e-6


@pytest.mark.parametrize("method", ["lsr1/trust", "lsr1/cubic", "newton-cg"])
def test_a_tiny_learning_rate_takes_tiny_steps_at_any_time(method):
    x = torch.nn.Parameter(torch.tensor([3.0, -2.0, 1.0], dtype=torch.float64))
    optimizer = signedstep.SecondOrder([x], method, max_iter=1)
    closure = lambda: (1 - torch.cos(0.3 * x)).sum()  # noqa: E731
    optimizer.step(closure)
    optimizer.param_groups[0]["lr"] = 1e-6
    before = x.detach().clone()
    optimizer.step(closure)
    assert 0 < float((x.detach() - before).norm()) < 1e-4


def cliff(x: Tensor) -> Tensor:
    """A fit of exponents: from 0 the gradient's step of length 1 ends at 1e50, its minimum is a hundredth as far."""
    return ((torch.exp(60 * x) - torch.arange(2, 6, dtype=x.dtype)) ** 2).sum()


@pytest.mark.parametrize("region", [*REGIONS, "steihaug"])
@pytest.mark.parametrize("curvature", ["bfgs", "sr1", "lbfgs", "lsr1", "mix", "ssbfgs"])
def test_a_model_does_not_learn_from_trials_that_are_far_off(curvature, region):
    """What it learned of a cliff made its next steps too short to be seen, and the run "stalled" where it began."""
    result = signedstep.minimize(cliff, torch.zeros(4, dtype=torch.float64), method=f"{curvature}/{region}")
    assert result.success, result.message
    assert result.fun < 1e-10


def test_only_a_rise_of_the_size_of_the_prediction_teaches():
    assert Trial(1, -1, predicted=1, far=1e10, actual=-99).teaches
    assert not Trial(1, -1, predicted=1, far=1e10, actual=-101).teaches
    assert not Trial(1, -1, predicted=1, far=1e10).teaches, "f was not finite"


@pytest.mark.parametrize(
    "method", ["bfgs/trust", "sr1/trust", "lbfgs/trust", "mix/trust", "lsr1/cubic", "newton/cubic"]
)
def test_a_step_that_single_coordinates_see_is_no_stall(method):
    """Next to a coordinate of 1e10 the whole step is rounding, but the other one, of 1e-8, decides."""

    def fun(x: Tensor) -> Tensor:
        u = 1e8 * x[1]
        return (x[0] / 1e10 - 1) ** 2 + u**4 + u**2 - u

    result = signedstep.minimize(fun, torch.tensor([2e10, 3e-8], dtype=torch.float64), method=method)
    assert result.fun < 0.79  # from 88


@pytest.mark.parametrize("method", ["bfgs/trust", "sr1/trust", "lbfgs/trust", "bfgs/dogleg", "bfgs/steihaug"])
def test_a_bound_that_has_become_invisible_is_forgotten_with_the_model(method):
    """Once the small coordinates are solved, steps for them do not move the large one at all."""
    fun = lambda x: ((x[0] - 1e6) / 10) ** 2 + rosenbrock(1e4 * x[1:])  # noqa: E731
    result = signedstep.minimize(fun, torch.tensor([1e6 + 30, -1.2e-4, 1e-4]), method=method)
    assert result.fun < 1e-3


@pytest.mark.parametrize("method", ["bfgs/trust", "sr1/trust", "lsr1/cubic", "lbfgs/cubic"])
def test_waves_do_not_make_a_gradient_wrong(method):
    """Trials that pass many hills rise or fall, whatever the slope is where they end."""
    random = np.random.default_rng(0)
    for _ in range(5):
        w, a, x0 = 10 ** random.uniform(1, 6), *(torch.tensor(random.normal(size=3)) for _ in range(2))
        fun = lambda x: (2 - torch.cos(w * (x - a))).sum() + 0.01 * ((x - a) ** 2).sum()  # noqa: B023, E731
        assert signedstep.minimize(fun, x0, method=method, options={"gtol": 1e-6 * w}).success


@pytest.mark.parametrize("method", ["newton/trust", "newton/cubic", "newton-cg/trust"])
def test_large_units_are_not_unbounded(method):
    fun = lambda x: rosenbrock(x / 1e12)  # noqa: E731
    result = signedstep.minimize(fun, torch.zeros(6, dtype=torch.float64), method=method, options={"gtol": 1e-17})
    assert result.success
