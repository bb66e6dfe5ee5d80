"""Every curvature model with every globalization on the one engine: what a step promises, checked from outside."""

import io
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import signedstep
from cases import FUNCTION_METHODS, SHOWN_TO_FAIL
from conftest import convex, evaluated, indefinite, network, rosenbrock
from signedstep.alongline import Direction, Raw
from signedstep.catalogue import CURVATURES, GLOBALIZATIONS
from signedstep.curvature import SR1, Gamma
from signedstep.engine import Engine, Tolerances
from signedstep.linesearch import Armijo, Signed, Wolfe
from signedstep.methods import build
from signedstep.objective import Point
from signedstep.space import Space
from signedstep.spectrum import Spectrum
from signedstep.status import Status
from signedstep.tensors import TorchObjective

METHODS = [name for name in FUNCTION_METHODS if "/" in name]
GLOBAL = [
    "gd",
    *(name for name in METHODS if name not in SHOWN_TO_FAIL and not name.startswith("gd/")),
]
"""The methods with a promise to converge from every point; on multiples of the identity all rules are one."""


def double_well(x: Tensor) -> Tensor:
    """A saddle between two valleys."""
    return (x[0] ** 2 - 1) ** 2 + 10 * (x[1] - 0.5 * x[0]) ** 2


def saddle(x: Tensor) -> Tensor:
    """The saddle of the design: minima at (+-1, 0)."""
    return x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2 / 2


def rational(x: Tensor) -> Tensor:
    return (x**2 / (1 + x**2)).sum() + 0.01 * (x**2).sum() + torch.sin(3 * x).sum()


loss, weights = network()
PROBLEMS = {
    "rosenbrock": (rosenbrock, torch.tensor([-1.2, 1.0] * 5, dtype=torch.float64)),
    "double-well": (double_well, torch.tensor([0.05, 1.0], dtype=torch.float64)),
    "saddle": (saddle, torch.tensor([0.1, 1e-3], dtype=torch.float64)),
    "rational": (rational, torch.linspace(-3, 3, 7, dtype=torch.float64)),
    "indefinite": (indefinite(12), torch.full((12,), 0.3, dtype=torch.float64)),
    "network": (loss, weights),
}


def run(method: str, problem: str, **options):
    fun, x0 = PROBLEMS[problem]
    return signedstep.minimize(fun, x0, method=method, options={"maxiter": 60, "return_all": True, **options})


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", METHODS)
def test_every_step_satisfies_what_it_claims(method, problem):
    """The Wolfe+- conditions of the paper's appendix, recomputed from the iterates alone."""
    fun, _ = PROBLEMS[problem]
    result = run(method, problem)
    model = CURVATURES[method.partition("/")[0]]
    c1, c2, weak = 1e-4, model.c2, model.condition == "weak"
    before = evaluated(fun, result.allvecs[0])
    for record, x in zip(result.history, result.allvecs[1:], strict=True):
        after = evaluated(fun, x)
        step = after.x - before.x
        slope0, slope = float(before.g @ step), float(after.g @ step)  # along alpha p: scaled by |alpha|, sign fixed
        assert record.f == pytest.approx(after.f, rel=1e-12, abs=1e-300)
        assert record.grad_norm == pytest.approx(float(after.g.norm()), rel=1e-9, abs=1e-300)
        if record.alpha:
            assert slope0 < 0, "a step goes downhill, whatever the sign of alpha"
            assert math.copysign(1, record.alpha) == math.copysign(1, record.cosine)
            assert abs(record.cosine) == pytest.approx(
                -slope0 / float(before.g.norm() * step.norm()), rel=1e-3, abs=1e-9
            )
        rounding = 1e-9 * abs(slope0) + 1e-14 * abs(before.f)
        if record.status is Status.WOLFE:
            assert after.f <= before.f + c1 * slope0 + rounding
            assert c2 * slope0 - rounding <= slope <= (math.inf if weak else -c2 * slope0 + rounding)
        elif record.status is Status.APPROXIMATE_WOLFE:
            assert abs(after.f - before.f) <= 1e-13 * abs(before.f) + 1e-300
            assert slope <= (2 * c1 - 1) * slope0 + rounding
            assert c2 * slope0 - rounding <= slope <= (math.inf if weak else -c2 * slope0 + rounding)
        elif record.status is Status.RATIO:
            assert record.alpha == 1
            assert after.f < before.f
        elif record.status is Status.APPROXIMATE_RATIO:
            assert record.alpha == 1
            assert abs(after.f - before.f) <= 1e-13 * abs(before.f) + 1e-300
            assert slope0 + slope < 0
        else:
            assert not record.status.ok
            assert after.f <= before.f
        before = after


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", GLOBAL)
def test_methods_with_a_promise_keep_it(method, problem):
    """They descend at every iteration and reach a stationary point, unless they run out of time on the way.

    Gradient descent may, and so may Newton's method on the network: its minimum is degenerate, and Hessians take time.
    """
    hessians = method.startswith("newton")
    result = run(method, problem, maxiter=60 if hessians else 3000, return_all=False)
    assert result.fun < evaluated(*PROBLEMS[problem]).f
    out_of_time = method == "gd" or (hessians and problem == "network")
    assert result.success or out_of_time, (method, problem, result.message)


@pytest.mark.parametrize("condition", ["strong", "weak", "paper"])
def test_the_curvature_condition_is_an_option(condition):
    result = run("sr1/wolfe+-", "network", condition=condition)
    fun, _ = PROBLEMS["network"]
    signs = set()
    for record, x, y in zip(result.history, result.allvecs, result.allvecs[1:], strict=False):
        if record.status is Status.WOLFE:
            slope0, slope = (float(evaluated(fun, z).g @ (y - x)) for z in (x, y))
            signs.add(slope > 0)
            assert slope >= 0.9 * slope0 - 1e-12
            assert condition != "strong" or abs(slope) <= 0.9 * abs(slope0) + 1e-12
            assert condition != "paper" or slope <= 1e-12 * abs(slope0)
    assert (True in signs) == (condition != "paper")


@pytest.mark.parametrize("method", ["sr1/wolfe+-", "lsr1/wolfe+-", "lsr1/flip", "bfgs", "lbfgs"])
def test_sufficient_decrease_may_be_all_that_is_asked(method):
    fun, _ = PROBLEMS["network"]
    result = run(method, "network", condition="armijo", maxiter=300)
    statuses = set(result.history.status)
    assert result.fun < 0.5 * result.history.f0
    assert Status.ARMIJO in statuses
    assert not statuses & {Status.WOLFE, Status.APPROXIMATE_WOLFE}
    for record, x, y in zip(result.history, result.allvecs, result.allvecs[1:], strict=False):
        before, after = evaluated(fun, x), evaluated(fun, y)
        if record.status is Status.ARMIJO:
            assert after.f <= before.f + 1e-4 * float(before.g @ (y - x)) + 1e-14 * abs(before.f)


class Negated(Raw):
    """Wolfe+- with every direction turned round before the search."""

    def propose(self, g, B) -> Direction:
        way = super().propose(g, B)
        return way._replace(p=-way.p, slope=-way.slope)


SIGNED = [
    *((name, problem) for name in METHODS if name.endswith("+-") for problem in ("rosenbrock", "saddle", "indefinite")),
    *((name, "network") for name in ("sr1/wolfe+-", "lsr1/wolfe+-", "lbfgs/wolfe+-", "cg/wolfe+-")),
]
"""Newton's method has no direction on the network: units that saturate make its Hessian singular."""


@pytest.mark.parametrize(("method", "problem"), SIGNED)
def test_negating_the_direction_negates_alpha_and_nothing_else(method, problem):
    fun, x0 = PROBLEMS[problem]
    engines = []
    for negate in (False, True):
        space = Space()
        parts = build(method, x0, space, {})
        search = parts.globalization.search  # type: ignore[attr-defined]
        how = (Negated if negate else Raw)(search, 0.0, space)  # no guard: it would replace both by the same
        objective = TorchObjective(fun, None, (), tuple(x0.shape))
        engines.append(Engine(objective, objective(x0.clone()), parts.curvature, how, space, Tolerances(gtol=0)))
    plain, negated = engines
    for _ in range(40):
        a, b = plain.step(), negated.step()
        assert torch.equal(plain.at.x, negated.at.x)
        assert (a.f, a.grad_norm, a.evals, a.learned) == (b.f, b.grad_norm, b.evals, b.learned)
        assert (a.alpha, a.cosine) == (-b.alpha, -b.cosine)
        if plain.status is not Status.RUNNING:
            break


@pytest.mark.parametrize("problem", ["rosenbrock", "network"])
def test_positive_steps_stall_and_signed_steps_converge(problem):
    """The paper's claims (a) and (b)."""
    positive = run("sr1/wolfe", problem, maxiter=2000, return_all=False)
    signed = run("sr1/wolfe+-", problem, maxiter=2000, return_all=False)
    assert positive.status is Status.NOT_DESCENT
    assert not positive.success
    assert signed.success
    assert (signed.history.alpha < 0).any()
    assert signed.fun < positive.fun


@given(seed=st.integers(0, 10**6), method=st.sampled_from(["sr1/wolfe+-", "lsr1/wolfe+-", "lsr1/flip", "gd/wolfe"]))
def test_proposition_1(seed, method):
    """Each iteration decreases f by at least c cos^2 |g|^2 with c = c1 (1 - c2)/L, where L is known: sines.

    With c1 and c2 as near to each other as this the bound is tight: steps are as long as the curvature condition asks.
    """
    c1, c2 = 0.3, 0.4
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    x0 = torch.randn(6, generator=generator, dtype=torch.float64)
    lipschitz = float(torch.linalg.matrix_norm(A, 2) ** 2) + 0.1
    fun = lambda x: torch.sin(A @ x).sum() + 0.05 * x @ x  # noqa: E731
    history = signedstep.minimize(fun, x0, method=method, options={"maxiter": 40, "c1": c1, "c2": c2}).history
    f = np.concatenate(([history.f0], history.f))
    grad_norm = np.concatenate(([history.grad_norm0], history.grad_norm))[:-1]
    certain = np.array([status is Status.WOLFE for status in history.status], dtype=bool)
    promised = c1 * (1 - c2) / lipschitz * history.cosine**2 * grad_norm**2
    assert certain.any()
    assert (f[:-1] - f[1:] >= promised - 1e-14 * np.abs(f[:-1]))[certain].all()
    assert f[0] - f[-1] >= promised[certain].sum() - 1e-12


class Orthogonal(SR1):
    """A model whose direction is orthogonal to the gradient, which Proposition 1 forbids."""

    def solve(self, g: Tensor) -> Tensor:
        return torch.stack((-g[1], g[0]))


class OrthogonalAndBlind(Orthogonal):
    """One whose spectrum is of no use either."""

    def spectrum(self, g: Tensor) -> Spectrum:
        return Spectrum(np.array([math.nan]), np.array([1.0]), lambda a: g * math.nan)


class Overflown(SR1):
    """One whose matrix is not finite any more, so that it cannot even be diagonalised."""

    def solve(self, g: Tensor) -> Tensor:
        return g * math.inf

    def spectrum(self, g: Tensor) -> Spectrum:
        self.H.fill_(math.nan)
        return super().spectrum(g)


@pytest.mark.parametrize("model", [Orthogonal, OrthogonalAndBlind, Overflown])
def test_cosine_safeguard(model):
    """|cos| < delta is replaced by the flipped direction, and that, if need be, by the gradient."""
    space = Space()
    how = Raw(Signed(Wolfe()), 1e-10, space)
    objective = lambda x: evaluated(double_well, x)  # noqa: E731
    x0 = torch.tensor([0.5, 1.0], dtype=torch.float64)
    engine = Engine(objective, objective(x0), model(Gamma("norm")), how, space, Tolerances())
    for _ in range(300):
        record = engine.step()
        assert abs(record.cosine) >= 1e-10
        if engine.status is not Status.RUNNING:
            break
    assert engine.status is Status.GRADIENT


def first_trials(method: str, problem: str, **options) -> list[tuple[float, float, float]]:
    """For each iteration after the first: alpha, length of the first trial step and of the step before."""
    fun, x0 = PROBLEMS[problem]
    space = Space()
    parts = build(method, x0, space, options)
    trials: list[Tensor] = []

    def objective(x: Tensor) -> Point:
        trials.append(x)
        return evaluated(fun, x)

    engine = Engine(objective, objective(x0.clone()), parts.curvature, parts.globalization, space, Tolerances())
    found, last = [], math.nan
    for _ in range(40):
        at, count = engine.at.x, len(trials)
        record = engine.step()
        if engine.status is not Status.RUNNING:
            break
        found.append((record.alpha, float((trials[count] - at).norm()), last))
        last = float((engine.at.x - at).norm())
    return found[1:]


def test_first_trial_after_a_flip_has_the_length_of_the_last_step():
    flipped = [(trial, last) for alpha, trial, last in first_trials("sr1/wolfe+-", "network") if alpha < 0]
    assert flipped
    for trial, last in flipped:
        assert trial == pytest.approx(last, rel=1e-9)


@pytest.mark.parametrize("how", ["clip", "damp"])
@pytest.mark.parametrize(("model", "problem", "most"), [("sr1", "rosenbrock", 2), ("newton", "network", 10)])
def test_first_trial_where_a_negative_eigenvalue_was_replaced_has_a_length_to_go_by(how, model, problem, most):
    """Replaced by 1e-14 of the largest, it asks for a step of any length, and the search for up to 30 evaluations."""
    fun, x0 = PROBLEMS[problem]
    options = {"floor": 1e-14, "maxiter": 40, "gtol": 0}
    result = signedstep.minimize(fun, x0, method=f"{model}/{how}", options=options)
    assert result.history.evals.mean() < most


def test_first_step_has_length_one_whatever_the_units_of_f():
    fun, x0 = PROBLEMS["indefinite"]
    for scale in (1e-8, 1.0, 1e8):
        trials: list[Tensor] = []

        def objective(x: Tensor, scale: float = scale, trials: list[Tensor] = trials) -> Point:
            trials.append(x)
            return evaluated(lambda z: scale * fun(z), x)

        space = Space()
        parts = build("lsr1", x0, space, {})
        engine = Engine(
            objective, objective(x0.clone()), parts.curvature, parts.globalization, space, Tolerances(gtol=0)
        )
        engine.step()
        assert float((trials[1] - x0).norm()) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(("policy", "status"), [("stop", Status.NO_LOWER_POINT), ("restart", Status.GRADIENT)])
def test_policy_after_a_failed_search(policy, status):
    """A model that lies about every direction: stopping says so, restarting from the identity still converges."""

    class Liar(SR1):
        """Its direction climbs a cliff in both senses as soon as it has learned something."""

        def solve(self, g: Tensor) -> Tensor:
            return super().solve(g) if self.learned == 0 else torch.stack((-g[1] + 1e-3 * g[0], g[0])) * 1e12

    space = Space()
    objective = lambda x: evaluated(convex(2), x)  # noqa: E731
    how = Raw(Armijo(max_evals=3), 1e-14, space)
    x0 = torch.tensor([1.0, 2.0], dtype=torch.float64)
    engine = Engine(objective, objective(x0), Liar(Gamma("norm")), how, space, Tolerances(), policy)
    best = engine.at.f
    for _ in range(2000):
        engine.step()
        assert engine.at.f <= best
        best = engine.at.f
        if engine.status is not Status.RUNNING:
            break
    assert engine.status is status


def test_unknown_policy_is_named():
    with pytest.raises(ValueError, match=r"on_failure.*'explode'"):
        signedstep.minimize(rosenbrock, torch.zeros(2), options={"on_failure": "explode"})


@pytest.mark.parametrize("method", GLOBAL)
def test_both_precisions(method, dtype):
    x0 = torch.tensor([-1.2, 1.0], dtype=dtype)
    result = signedstep.minimize(rosenbrock, x0, method=method, options={"gtol": 1e-3, "maxiter": 3000})
    assert result.x.dtype == dtype
    assert result.success or method == "gd"
    assert result.fun < 2e-4


def test_damping_is_the_same_from_the_small_and_the_large_matrix():
    cheap, expensive = (run(f"lsr1/{how}", "network", maxiter=15) for how in ("damp", "damp-dense"))
    assert cheap.history.f == pytest.approx(expensive.history.f, rel=1e-6)


@pytest.mark.parametrize("rule", ["flip", "clip", "damp"])
def test_memory_larger_than_the_problem_gives_the_dense_method(rule):
    """L-SR1 with all pairs and dense SR1 with the same gamma walk together while the model is well conditioned."""
    options = {"gamma": "identity", "floor": 1e-3, "maxiter": 6}
    dense = run(f"sr1/{rule}", "indefinite", **options)
    limited = run(f"lsr1/{rule}", "indefinite", **options, history_size=30)
    for a, b in zip(dense.allvecs, limited.allvecs, strict=True):
        assert float((a - b).norm()) < 1e-8


def test_rotations_do_not_change_the_iterates():
    """f(Q x) from Q'x0 goes through Q'x: all of it is Euclidean geometry."""
    Q, _ = torch.linalg.qr(torch.randn(12, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    fun, x0 = PROBLEMS["indefinite"]
    for method in ("lsr1/wolfe+-", "lsr1/flip", "sr1/damp", "lbfgs", *(f"newton/{how}" for how in GLOBALIZATIONS)):
        options = {"maxiter": 8, "return_all": True}
        plain = signedstep.minimize(fun, x0, method=method, options=options)
        turned = signedstep.minimize(lambda x: fun(Q @ x), Q.T @ x0, method=method, options=options)
        for a, b in zip(plain.allvecs, turned.allvecs, strict=True):
            assert float((a - Q @ b).norm()) < 1e-7


@pytest.mark.parametrize("method", METHODS)
def test_an_engine_restored_goes_on_bit_for_bit(method):
    """Through a file; what the model knows is not found out again, so a Hessian that was evaluated is not wanted."""
    fun, x0 = PROBLEMS["rosenbrock"]
    _, objective, first = engine_of(method, fun, x0)
    for _ in range(3):
        first.step()
    file = io.BytesIO()
    torch.save(first.state(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    _, fresh, second = engine_of(method, fun, state["x"])
    second.restore(state)
    before = objective.hessians
    for _ in range(6):
        a, b = first.step(), second.step()
        assert a._replace(seconds=0) == b._replace(seconds=0) or math.isnan(a.cosine)
        assert torch.equal(first.at.x, second.at.x)
        assert first.status is second.status
        if first.status is not Status.RUNNING:
            break
    assert fresh.hessians == objective.hessians - before


def engine_of(method: str, fun, x0: Tensor):
    """The parts of a method, an objective that counts, and an engine at x0."""
    space = Space()
    parts = build(method, x0, space, {})
    objective = TorchObjective(fun, None, (), tuple(x0.shape))
    start = objective(x0.clone())
    return (
        parts,
        objective,
        Engine(objective, start, parts.curvature, parts.globalization, space, Tolerances(gtol=0), parts.on_failure),
    )


def test_two_passes_over_the_history():
    """Per iteration: one product of the stored rows with at most three new vectors, and one combination."""

    class Counting(Space):
        products: list[int] = []  # noqa: RUF012
        combinations = 0

        def inner(self, A, B):
            self.products.append(len(B))
            return super().inner(A, B)

        def grams(self, A, V, count):
            self.products.append(count)
            return super().grams(A, V, count)

        def combine(self, c, A, scale, v):
            Counting.combinations += 1
            return super().combine(c, A, scale, v)

    fun, x0 = PROBLEMS["network"]
    for method in ("lsr1/flip", "lsr1/wolfe+-", "lbfgs/wolfe"):
        space = Counting()
        parts = build(method, x0, space, {"history_size": 8})
        engine = Engine(
            lambda x: evaluated(fun, x), evaluated(fun, x0), parts.curvature, parts.globalization, space, Tolerances()
        )
        for _ in range(12):
            engine.step()
        Counting.products.clear()
        Counting.combinations = 0
        for _ in range(20):
            engine.step()
        assert len(Counting.products) == 20
        assert max(Counting.products) <= 3
        assert Counting.combinations == 20


@pytest.mark.parametrize("method", ["bfgs", "sr1", "sr1/flip"])
def test_a_model_that_has_gone_wrong_is_forgotten_before_a_run_ends_as_stalled(method):
    """Far out in Rosenbrock's valley f falls by less than rounding until the model starts again."""
    x0 = torch.tensor([-1e6, 1e6], dtype=torch.float64)
    fun = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2  # noqa: E731
    assert signedstep.minimize(fun, x0, method=method, options={"maxiter": 5000}).success
    result = signedstep.minimize(fun, x0, method=method, options={"maxiter": 5000, "on_failure": "stop"})
    assert result.status is Status.STALLED, "the test shows nothing"


@pytest.mark.parametrize("method", ["bfgs", "ssbfgs", "ssbroyden", "sr1/wolfe+-", "sr1/trust"])
def test_dense_models_go_on_learning_where_eigenvalues_are_far_apart(method):
    """Steps and changes of the gradient are nearly orthogonal there; refused by their angle, H froze for good."""
    generator = torch.Generator().manual_seed(3)
    X = torch.randn(60, 4, dtype=torch.float64, generator=generator)
    y = torch.sin(X.sum(1)) + 0.3 * torch.randn(60, dtype=torch.float64, generator=generator)

    def loss(w: Tensor) -> Tensor:
        return ((torch.tanh(X @ w[:16].view(4, 4) + w[16:20]) @ w[20:] - y) ** 2).mean()

    x0 = 0.5 * torch.randn(24, dtype=torch.float64, generator=generator)
    history = signedstep.minimize(loss, x0, method=method, options={"gtol": 0, "maxfun": 1000}).history
    going = history.f > (1 + 1e-9) * history.f.min()  # afterwards differences are rounding, and rightly refused
    assert (~history.learned[going]).sum() <= 0.05 * going.sum()


@pytest.mark.parametrize("method", METHODS)
def test_the_default_device_does_not_matter(method):
    x0 = -torch.ones(4, dtype=torch.float64)
    reference = signedstep.minimize(rosenbrock, x0, method=method, options={"maxiter": 15})
    with torch.device("meta"):
        result = signedstep.minimize(rosenbrock, x0, method=method, options={"maxiter": 15})
    assert result.fun == reference.fun
