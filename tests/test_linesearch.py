"""The line searches, judged from outside: every claim of a result is recomputed from a fresh call of phi."""

import ast
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.optim import lbfgs as torch_lbfgs

from signedstep import linesearch
from signedstep.linesearch import CURVATURE_CONDITIONS, Armijo, Signed, Wolfe, Zoom
from signedstep.status import Status
from signedstep.trials import Found, Phi

Pair = tuple[float, float]
FIRST_STEPS = (1e-3, 1e-1, 1e1, 1e3)
WIDE_ROUNDING = 8 * 2.0**-23

random_cases = settings(max_examples=150, deadline=None, derandomize=True, database=None)


# Judging a result ----------------------------------------------------------------------------------------------------


class Recorder:
    """A phi that remembers the trials it was asked for and the finite answers it gave."""

    def __init__(self, phi: Phi):
        self.phi = phi
        self.asked: list[float] = []
        self.seen: list[tuple[float, float, float]] = []

    def __call__(self, t: float) -> Pair:
        self.asked.append(t)
        f, slope = self.phi(t)
        if math.isfinite(f) and math.isfinite(slope):
            self.seen.append((t, f, slope))
        return f, slope


def mirror(phi: Phi) -> Phi:
    """The line walked the other way, phi(-t)."""

    def mirrored(t: float) -> Pair:
        f, slope = phi(-t)
        return f, -slope

    return mirrored


def sufficient(search: Wolfe | Armijo, f0: float, slope0: float, t: float, f: float, slope: float) -> bool:
    """Sufficient decrease; where the difference is below rounding, truly or in the form of Hager and Zhang."""
    if abs(f - f0) <= search.rounding * abs(f0):
        return f - f0 <= search.c1 * t * slope0 or slope <= (2 * search.c1 - 1) * slope0 - 1e-15 * slope0
    return f <= f0 + search.c1 * t * slope0


def curved(search: Wolfe | Armijo, slope0: float, slope: float) -> bool:
    """The curvature condition, written out once more."""
    if isinstance(search, Armijo):
        return True
    return {
        "strong": abs(slope) <= search.c2 * abs(slope0),
        "weak": slope >= search.c2 * slope0,
        "paper": search.c2 * slope0 <= slope <= 0,
    }[search.curvature]


def judge(search: Wolfe | Armijo, phi: Phi, t0: float, budget: float = math.inf) -> Found:
    """Search along phi and check everything a result promises, whatever its status."""
    f0, slope0 = phi(0.0)
    recorder = Recorder(phi)
    found = search(recorder, f0, slope0, t0, budget)
    assert found.evals == len(recorder.asked)
    assert found.evals <= min(search.max_evals, max(budget, 0))
    assert all(0 < t <= search.max_step for t in recorder.asked)
    assert all(map(math.isfinite, (found.t, found.f, found.slope)))
    if found.ok:
        assert (found.f, found.slope) == phi(found.t)
        assert sufficient(search, f0, slope0, found.t, found.f, found.slope)
        assert curved(search, slope0, found.slope)
    else:
        lowest = min(recorder.seen, key=lambda sample: sample[1], default=(0.0, f0, slope0))
        assert (found.t, found.f, found.slope) == (lowest if lowest[1] < f0 else (0.0, f0, slope0))
    return found


# The six functions of More and Thuente (1994), section 5 --------------------------------------------------------------


def rational(t: float, beta: float) -> Pair:
    """Function I."""
    return -t / (t * t + beta), (t * t - beta) / (t * t + beta) ** 2


def quintic(t: float, beta: float) -> Pair:
    """Function II."""
    u = t + beta
    return u**5 - 2 * u**4, 5 * u**4 - 8 * u**3


def oscillating(t: float, beta: float, waves: int) -> Pair:
    """Function III: a rounded |1 - t| with oscillations of its slope."""
    if abs(t - 1) < beta:
        f, slope = (t - 1) ** 2 / (2 * beta) + beta / 2, (t - 1) / beta
    else:
        f, slope = abs(t - 1), math.copysign(1.0, t - 1)
    w = waves * math.pi / 2
    return f + (1 - beta) / w * math.sin(w * t), slope + (1 - beta) * math.cos(w * t)


def yanai(t: float, beta1: float, beta2: float) -> Pair:
    """Functions IV to VI: two hyperbolas whose bends are as sharp as the betas are small."""
    a, b = (math.sqrt(1 + beta * beta) - beta for beta in (beta1, beta2))
    left, right = math.hypot(t, beta1), math.hypot(1 - t, beta2)
    return a * right + b * left, a * (t - 1) / right + b * t / left


class Classic(NamedTuple):
    phi: Phi
    c1: float
    c2: float
    dcsrch: tuple[int, ...]
    """Evaluations of MINPACK-2's DCSRCH, as in SciPy, from each of FIRST_STEPS."""


CLASSICS = {
    "I": Classic(lambda t: rational(t, 2.0), 0.001, 0.1, (6, 3, 1, 4)),
    "II": Classic(lambda t: quintic(t, 0.004), 0.1, 0.1, (12, 8, 8, 11)),
    "III": Classic(lambda t: oscillating(t, 0.01, 39), 0.1, 0.1, (12, 12, 10, 13)),
    "IV": Classic(lambda t: yanai(t, 0.001, 0.001), 0.001, 0.001, (4, 1, 3, 4)),
    "V": Classic(lambda t: yanai(t, 0.01, 0.001), 0.001, 0.001, (6, 3, 7, 8)),
    "VI": Classic(lambda t: yanai(t, 0.001, 0.01), 0.001, 0.001, (13, 11, 8, 11)),
}


def dcsrch(phi: Phi, c1: float, c2: float, t0: float) -> int | None:
    """Evaluations of SciPy's DCSRCH along phi; None if it gave up."""
    DCSRCH = pytest.importorskip("scipy.optimize._dcsrch").DCSRCH
    recorder = Recorder(phi)
    run = DCSRCH(lambda t: recorder(t)[0], lambda t: phi(t)[1], c1, c2, 1e-15, 0.0, 1e10)
    f0, slope0 = phi(0.0)
    with np.errstate(all="ignore"):
        alpha, *_ = run(min(t0, 1e10), phi0=f0, derphi0=slope0, maxiter=100)
    return len(recorder.asked) if alpha is not None else None


@pytest.mark.parametrize("name", CLASSICS)
def test_slopes_of_the_classics_are_derivatives(name):
    phi, h = CLASSICS[name].phi, 1e-6
    for t in (0.0035, 0.3, 0.995, 1.7):
        difference = (phi(t + h)[0] - phi(t - h)[0]) / (2 * h)
        assert phi(t)[1] == pytest.approx(difference, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("curvature", CURVATURE_CONDITIONS)
@pytest.mark.parametrize("t0", FIRST_STEPS)
@pytest.mark.parametrize("name", CLASSICS)
def test_classics_satisfy_the_conditions(name, t0, curvature):
    phi, c1, c2, _ = CLASSICS[name]
    assert judge(Wolfe(c1, c2, curvature), phi, t0).status is Status.WOLFE
    if curvature != "paper":
        found = judge(Zoom(c1, c2, curvature), phi, t0)
        assert found.status is (Status.MAX_SEARCH if (name, t0) == ("I", 1e3) else Status.WOLFE), "as torch's own"


@pytest.mark.parametrize("name", CLASSICS)
def test_scipy_needs_the_evaluations_we_compare_with(name):
    phi, c1, c2, expected = CLASSICS[name]
    assert tuple(dcsrch(phi, c1, c2, t0) for t0 in FIRST_STEPS) == expected


def test_classics_cost_no_more_than_a_tenth_above_dcsrch():
    ours = sum(judge(Wolfe(c.c1, c.c2), c.phi, t0).evals for c in CLASSICS.values() for t0 in FIRST_STEPS)
    theirs = sum(sum(c.dcsrch) for c in CLASSICS.values())
    assert theirs == 179
    assert ours <= 1.10 * theirs


@pytest.mark.parametrize("curvature", CURVATURE_CONDITIONS)
@pytest.mark.parametrize("name", CLASSICS)
def test_classics_mirrored_give_the_negated_step(name, curvature):
    phi, c1, c2, _ = CLASSICS[name]
    f0, slope0 = phi(0.0)
    plain = Wolfe(c1, c2, curvature)
    for t0 in FIRST_STEPS:
        forth, back = plain(phi, f0, slope0, t0), Signed(plain)(mirror(phi), f0, -slope0, t0)
        assert forth.t > 0
        assert back == forth._replace(t=-forth.t, slope=-forth.slope)


# The search of torch.optim.LBFGS --------------------------------------------------------------------------------------


def torchs_trials(phi: Phi, t0: float) -> list[float]:
    """Where torch's own search looks."""
    asked: list[float] = []

    def evaluate(x: torch.Tensor, t: float, d: torch.Tensor) -> tuple[float, torch.Tensor]:
        asked.append(float(t))
        f, slope = phi(float(t))
        return f, torch.tensor([slope], dtype=torch.float64)

    f0, slope0 = phi(0.0)
    x, d, g = torch.zeros(1), torch.ones(1, dtype=torch.float64), torch.tensor([slope0], dtype=torch.float64)
    torch_lbfgs._strong_wolfe(evaluate, x, t0, d, f0, g, g[0], tolerance_change=0)
    return asked


@pytest.mark.parametrize("t0", [1e-2, 0.3, 1.0, 30.0])
def test_the_trials_are_those_of_torch(t0):
    """As far as rounding lets them be: where two trials are 1% apart, or f is a line, the cubic has lost its digits."""
    rng, alike, several = random.Random(2026), 0, 0
    shapes = (quartic, rational, wavy, yanai, rounded_corner)
    for shape in 60 * shapes:
        line = Line(shape, SHAPES[shape](rng))
        recorder, theirs = Recorder(line), torchs_trials(line, t0)
        Zoom(max_evals=26)(recorder, *line(0.0), t0)
        alike += recorder.asked == pytest.approx(theirs, rel=1e-4)
        several += len(theirs) > 1
    assert alike >= 0.97 * 300
    assert several >= 100, "lines where the first trial is not enough"


# Random lines ---------------------------------------------------------------------------------------------------------


def quartic(t: float, a: float, b: float, c: float) -> Pair:
    """A quartic bounded below, with slope -1 at 0."""
    return ((a * t / 4 + b / 3) * t + c / 2) * t * t - t, ((a * t + b) * t + c) * t - 1


def wavy(t: float, bend: float, *waves: float) -> Pair:
    """A quadratic plus sines, given as amplitude, frequency and phase, with slope -1 at 0."""
    f, slope = bend * t * t / 2 - t, bend * t - 1
    for a, w, p in zip(waves[::3], waves[1::3], waves[2::3], strict=True):
        f += a * (math.sin(w * t + p) - w * math.cos(p) * t)
        slope += a * w * (math.cos(w * t + p) - math.cos(p))
    return f, slope


def exponential(t: float, a: float, c: float) -> Pair:
    """Grows so fast that it raises OverflowError far out."""
    return math.exp(a * t) - (a + c) * t, a * math.exp(a * t) - a - c


def rounded_corner(t: float, a: float, c: float) -> Pair:
    """log cosh: a corner at c, the sharper the larger a."""
    u = a * (t - c)
    return abs(u) + math.log1p(math.exp(-2 * abs(u))), a * math.tanh(u)


def barrier(t: float, c: float, m: float) -> Pair:
    """Falls towards a logarithmic barrier at c, turning at a distance m before it; raises ValueError beyond."""
    return -t - m * math.log(1 - t / c), m / (c - t) - 1


@dataclass(frozen=True)
class Line:
    """A shape with its numbers, stretched to a height and a length, and raised."""

    shape: Callable[..., Pair]
    numbers: tuple[float, ...]
    height: float = 1.0
    length: float = 1.0
    raised: float = 0.0

    def __call__(self, t: float) -> Pair:
        f, slope = self.shape(t / self.length, *self.numbers)
        return self.raised + self.height * f, self.height * slope / self.length


def power(rng: random.Random, low: float, high: float) -> float:
    """A random number between 10^low and 10^high, even on the logarithmic scale."""
    return 10 ** rng.uniform(low, high)


def wave(rng: random.Random) -> tuple[float, float, float]:
    return rng.uniform(-2, 2), power(rng, -1, 1.3), rng.uniform(0, 2 * math.pi)


SHAPES: dict[Callable[..., Pair], Callable[[random.Random], tuple[float, ...]]] = {
    quartic: lambda rng: (power(rng, -2, 2), rng.uniform(-3, 3), rng.uniform(-3, 3)),
    rational: lambda rng: (power(rng, -3, 3),),
    wavy: lambda rng: (power(rng, -2, 1), *wave(rng), *wave(rng), *wave(rng)),
    yanai: lambda rng: (power(rng, -3, 0), power(rng, -3, 0)),
    rounded_corner: lambda rng: (power(rng, -2, 2), power(rng, -1, 1)),
    exponential: lambda rng: (power(rng, -1, 1), power(rng, -2, 2)),
}


def random_line(rng: random.Random, shape: Callable[..., Pair] | None = None) -> Line:
    """A line of the given or a random shape, of a height and length within eight decades of 1."""
    shape = shape or rng.choice(list(SHAPES))
    return Line(shape, SHAPES[shape](rng), power(rng, -8, 8), power(rng, -8, 8))


@st.composite
def wolfe_searches(draw) -> Wolfe:
    c1 = draw(st.floats(1e-6, 0.6))
    return Wolfe(
        c1=c1,
        c2=draw(st.floats(c1, 0.999)),
        curvature=draw(st.sampled_from(CURVATURE_CONDITIONS)),
        max_step=draw(st.sampled_from([1e10, 1e3, 1.0, 1e-2])),
        max_evals=draw(st.integers(1, 30)),
    )


@st.composite
def zoom_searches(draw) -> Zoom:
    wolfe = draw(wolfe_searches().filter(lambda search: search.curvature != "paper"))
    return Zoom(wolfe.c1, wolfe.c2, wolfe.curvature, wolfe.max_step, max_evals=wolfe.max_evals)


armijo_searches = st.builds(
    Armijo, c1=st.floats(1e-6, 0.9), max_step=st.sampled_from([1e10, 1.0]), max_evals=st.integers(1, 30)
)
searches = st.one_of(wolfe_searches(), zoom_searches(), armijo_searches)
lines = st.integers(0, 2**32).map(lambda seed: random_line(random.Random(seed)))
decades = st.floats(-6, 6)
budgets = st.one_of(st.just(math.inf), st.integers(-1, 25))


@random_cases
@given(searches, lines, decades, budgets)
def test_results_are_what_they_claim(search, line, decade, budget):
    judge(search, line, line.length * 10**decade, budget)


@random_cases
@given(searches, lines, decades, st.floats(0, 16))
def test_results_are_what_they_claim_high_above_zero(search, line, decade, height):
    judge(search, replace(line, raised=line.height * 10**height), line.length * 10**decade)


@random_cases
@given(searches, lines, decades, budgets)
def test_the_mirror_image_gives_the_negated_result_bit_for_bit(search, line, decade, budget):
    f0, slope0 = line(0.0)
    signed, t0 = Signed(search), line.length * 10**decade
    forth, back = signed(line, f0, slope0, t0, budget), signed(mirror(line), f0, -slope0, t0, budget)
    assert (back.t, back.f, back.slope) == (-forth.t, forth.f, -forth.slope)
    assert (back.evals, back.status, repr(back.error)) == (forth.evals, forth.status, repr(forth.error))


@random_cases
@given(wolfe_searches(), lines, decades)
def test_the_sign_of_the_first_step_does_not_matter_to_signed(search, line, decade):
    (f0, slope0), t0 = line(0.0), line.length * 10**decade
    assert repr(Signed(search)(line, f0, slope0, -t0)) == repr(search(line, f0, slope0, t0))


# Trials that fail -----------------------------------------------------------------------------------------------------


class Fault(NamedTuple):
    """An interval, in lengths of the line, on which phi fails in one of these ways."""

    low: float
    width: float
    kind: str


FAULTS: dict[str, Callable[[float, float], Pair]] = {
    "nan": lambda f, slope: (math.nan, math.nan),
    "inf": lambda f, slope: (math.inf, math.nan),
    "-inf": lambda f, slope: (-math.inf, math.nan),
    "slope nan": lambda f, slope: (f, math.nan),
    "slope inf": lambda f, slope: (f, -math.inf),
    "raises": lambda f, slope: (f, slope / 0),
}
FAULT_KINDS = st.sampled_from([*FAULTS])


@dataclass(frozen=True)
class Faulty:
    """A line with faults."""

    line: Line
    faults: tuple[Fault, ...]

    def __call__(self, t: float) -> Pair:
        f, slope = self.line(t)
        for low, width, kind in self.faults:
            if 0 < low <= t / self.line.length <= low + width:
                return FAULTS[kind](f, slope)
        return f, slope


faults = st.builds(Fault, st.floats(1e-6, 1e3), st.floats(0, 1e3), FAULT_KINDS)


@random_cases
@given(searches, lines, st.lists(faults, min_size=1, max_size=4), decades)
def test_faults_never_reach_the_result(search, line, holes, decade):
    judge(search, Faulty(line, tuple(holes)), line.length * 10**decade)


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("search", [Wolfe(), Wolfe(curvature="weak"), Wolfe(curvature="paper"), Zoom(), Armijo()])
def test_all_trials_failing_leaves_the_start(search, kind):
    phi = Faulty(Line(quartic, (1.0, 0.0, 0.0)), (Fault(5e-324, math.inf, kind),))
    found = judge(search, phi, 1.0)
    assert (found.t, found.f, found.slope, found.status) == (0.0, 0.0, -1.0, Status.WALL)


@pytest.mark.parametrize("search", [Wolfe(), Zoom(), Armijo(), Signed(Wolfe())])
def test_the_exception_of_a_trial_is_kept(search):
    error = ArithmeticError("beyond the wall")

    def phi(t: float) -> Pair:
        if t > 2:
            raise error
        return (t - 1) ** 2, 2 * (t - 1)

    found = search(phi, *phi(0.0), 10.0)
    assert found.ok
    assert found.error is error


def test_no_exception_no_error():
    assert Wolfe()(lambda t: ((t - 1) ** 2, 2 * (t - 1)), 1.0, -2.0, 10.0).error is None


@pytest.mark.parametrize("search", [Wolfe(), Zoom(), Armijo(), Signed(Wolfe())])
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_interrupts_propagate(search, interrupt):
    def phi(t: float) -> Pair:
        raise interrupt

    with pytest.raises(interrupt):
        search(phi, 0.0, -1.0, 1.0)


def falling_to_a_wall(t: float) -> Pair:
    """-t before 1, infinite from there on."""
    return (-t, -1.0) if t < 1 else (math.inf, math.nan)


@pytest.mark.parametrize("kind", [Wolfe, Zoom])
@pytest.mark.parametrize("t0", [1e-3, 0.3, 1.0, 50.0])
def test_a_wall_is_approached_and_named(t0, kind):
    found = judge(kind(max_evals=60), falling_to_a_wall, t0)
    assert found.status is Status.WALL
    assert found.t == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("search", [Wolfe(), Zoom()])
@pytest.mark.parametrize("t0", [1e-3, 0.3, 1.0, 50.0])
def test_a_wall_is_named_with_default_settings(t0, search):
    found = judge(search, falling_to_a_wall, t0)
    assert found.t == pytest.approx(1, rel=1e-2)
    assert found.status is Status.WALL


@pytest.mark.parametrize("t0", [1e-3, 0.3, 1.0, 50.0])
def test_armijo_stops_before_a_wall(t0):
    assert judge(Armijo(), falling_to_a_wall, t0).status is Status.ARMIJO


# Ends of the road -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curvature", CURVATURE_CONDITIONS)
@pytest.mark.parametrize("max_step", [1e-4, 1.0, 77.0, 1e10])
@pytest.mark.parametrize("phi", [lambda t: (-t, -1.0), lambda t: (-t - t * t, -1 - 2 * t)])
def test_unbounded_below_ends_at_the_longest_step(phi, max_step, curvature):
    for kind in (Wolfe,) if curvature == "paper" else (Wolfe, Zoom):
        found = judge(kind(curvature=curvature, max_step=max_step), phi, 1.0)
        assert (found.t, found.status) == (max_step, Status.MAX_STEP)


def test_a_longest_step_just_above_the_armijo_line_does_not_crash():
    c1, f0, longest, above = 0.42376670724727356, 1.03181761176121, 0.8990860035786055, 0.6508148964925939
    assert math.nextafter(f0 - c1 * longest, math.inf) == above
    found = Wolfe(c1, 0.9, max_step=longest)(lambda t: (above, -1.0), f0, -1.0, longest)
    assert not found.ok
    assert (found.t, found.f) == (longest, above)


def test_trials_that_underflow_to_zero_do_not_crash():
    def phi(t: float) -> Pair:
        return (1.0, -1.0) if t == 0 else (math.inf, math.nan)

    for kind in (Wolfe, Zoom):
        found = kind(max_evals=40)(phi, 1.0, -1.0, 1e-300)
        assert (found.t, found.f, found.ok) == (0.0, 1.0, False)


@pytest.mark.parametrize("level", [5.0, -1e8])
@pytest.mark.parametrize("search", [Wolfe(), Wolfe(curvature="weak"), Zoom(), Armijo()])
def test_a_constant_is_accepted_by_its_slopes_alone(search, level):
    found = search(lambda t: (level, 0.0), level, -1e-12, 1.0)
    assert found.status in (Status.APPROXIMATE_WOLFE, Status.APPROXIMATE_ARMIJO)
    assert (found.f, found.evals) == (level, 1)


def test_a_constant_whose_slope_never_changes_leads_nowhere():
    for search in (Wolfe(), Zoom()):
        found = search(lambda t: (5.0, -1.0), 5.0, -1.0, 1.0)
        assert (found.t, found.f, found.status) == (0.0, 5.0, Status.NO_LOWER_POINT)


@pytest.mark.parametrize("slope0", [0.0, 1e-300, 2.0, math.inf, math.nan])
@pytest.mark.parametrize("search", [Wolfe(), Wolfe(curvature="paper"), Zoom(), Armijo()])
def test_uphill_is_refused_without_an_evaluation(search, slope0):
    recorder = Recorder(lambda t: (t, 1.0))
    found = search(recorder, 3.0, slope0, 1.0)
    assert (found.t, found.f, found.evals, found.status) == (0.0, 3.0, 0, Status.NOT_DESCENT)
    assert recorder.asked == []


@pytest.mark.parametrize("slope0", [0.0, math.nan])
def test_signed_refuses_a_direction_without_a_slope(slope0):
    found = Signed(Wolfe())(lambda t: (t, 1.0), 3.0, slope0, 1.0)
    assert (found.t, found.f, found.evals, found.status) == (0.0, 3.0, 0, Status.NOT_DESCENT)


@pytest.mark.parametrize("search", [Wolfe(), Zoom(), Armijo()])
def test_the_minimiser_as_first_step_is_taken(search):
    found = judge(search, lambda t: ((t - 1) ** 2, 2 * (t - 1)), 1.0)
    assert (found.t, found.f, found.slope, found.evals) == (1.0, 0.0, 0.0, 1)


# Differences below rounding -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curvature", CURVATURE_CONDITIONS)
@pytest.mark.parametrize("t0", [1e-3, 0.5, 1.0, 1e2])
@pytest.mark.parametrize("height", [1e-9, 1e-12])
def test_a_parabola_below_rounding_is_searched_by_its_slopes(height, t0, curvature):
    found = judge(Wolfe(curvature=curvature), lambda t: (1e8 + height * (t - 1) ** 2, 2 * height * (t - 1)), t0)
    assert found.status is Status.APPROXIMATE_WOLFE
    assert 0 < found.t < 2


def test_below_rounding_a_slope_beyond_the_approximate_condition_is_refused():
    """(2 c1 - 1) phi'(0) is 0.4 |phi'(0)| here; the weak curvature condition alone lets any positive slope pass."""
    search = Wolfe(c1=0.3, curvature="weak")
    found = judge(search, lambda t: (1e8 + 1e-9 * (t - 1) ** 4, 4e-9 * (t - 1) ** 3), 10.0)
    assert found.slope <= 0.4 * 4e-9


@pytest.mark.parametrize("t0", [1e-2, 0.5, 1.0, 3.0, 1e2])
def test_noise_of_single_precision_is_seen_through(t0):
    def phi(t: float) -> Pair:
        """1e4 + 1e-4 (t - 1)^2 in single precision, with noise of about one unit in the last place."""
        u = np.float32(t)
        f = np.float32(1e4) + np.float32(1e-4) * (u - 1) ** 2 + np.float32(1e-3) * np.sin(np.float32(1e4) * u)
        return float(f), float(np.float32(2e-4) * (u - 1))

    for kind in (Wolfe, Zoom):
        found = judge(kind(rounding=WIDE_ROUNDING), phi, t0)
        assert found.ok
        assert abs(found.slope) <= 0.9 * 2e-4


# Reliability and cost -------------------------------------------------------------------------------------------------


def grid(shapes: list[Callable[..., Pair]], count: int, decades: float) -> list[tuple[Line, float]]:
    """Fixed random lines, taking turns through the shapes, with first steps this many decades around their length."""
    rng = random.Random(1994)
    made = [random_line(rng, shapes[i % len(shapes)]) for i in range(count)]
    return [(line, line.length * power(rng, -decades, decades)) for line in made]


GRID = grid([*SHAPES], 2000, 6)


@pytest.mark.parametrize("curvature", CURVATURE_CONDITIONS)
def test_every_line_of_the_grid_gives_a_wolfe_point(curvature):
    results = [(line, t0, judge(Wolfe(curvature=curvature), line, t0)) for line, t0 in GRID]
    assert [(line, t0, found.status.name) for line, t0, found in results if not found.ok] == []


def test_nearly_every_line_of_the_grid_gives_a_wolfe_point_to_torchs_search():
    """It is no More-Thuente: from first steps that are far off it may use up its evaluations."""
    results = [judge(Zoom(), line, t0) for line, t0 in GRID]
    assert 0.94 * len(results) <= sum(found.ok for found in results) < len(results)


def test_every_line_of_the_grid_gives_an_armijo_point():
    results = [(line, t0, judge(Armijo(), line, t0)) for line, t0 in GRID]
    assert [(line, t0, found.status.name) for line, t0, found in results if not found.ok] == []


def test_a_tight_curvature_condition_is_met_on_the_grid():
    results = [(line, t0, judge(Wolfe(c2=0.1), line, t0)) for line, t0 in GRID]
    assert [(line, t0, found.status.name) for line, t0, found in results if not found.ok] == []


def test_a_minimiser_before_a_wall_is_found():
    """The barrier turns a thousandth to a half of the way before the wall."""
    rng = random.Random(7)
    numbers = [(c, c * power(rng, -3, -0.3)) for c in (power(rng, -2, 2) for _ in range(400))]
    results = [(n, t0, judge(Wolfe(), Line(barrier, n), t0)) for n in numbers for t0 in (n[0] * power(rng, -4, 4),)]
    assert [(n, t0, found.status.name) for n, t0, found in results if not found.ok] == []


@pytest.mark.parametrize("c2", [0.9, 0.1])
def test_the_grid_costs_no_more_than_with_dcsrch(c2):
    finite = [(line, t0) for line, t0 in GRID[::5] if line.shape is not exponential]
    costs = [(judge(Wolfe(c2=c2), line, t0).evals, dcsrch(line, 1e-4, c2, t0)) for line, t0 in finite]
    both = [(ours, theirs) for ours, theirs in costs if theirs is not None]
    assert len(both) > 0.95 * len(costs)
    assert sum(ours for ours, _ in both) <= 1.05 * sum(theirs for _, theirs in both)


# Arguments ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Wolfe, {"c1": 0.5, "c2": 0.4}),
        (Wolfe, {"c1": 0.0}),
        (Wolfe, {"c1": -0.1}),
        (Wolfe, {"c1": math.nan}),
        (Wolfe, {"c2": 1.0}),
        (Wolfe, {"c2": 1.5}),
        (Wolfe, {"c2": math.nan}),
        (Wolfe, {"curvature": "Strong"}),
        (Wolfe, {"curvature": ""}),
        (Zoom, {"c1": 0.5, "c2": 0.4}),
        (Zoom, {"curvature": "steep"}),
        (Armijo, {"c1": 0.0}),
        (Armijo, {"c1": -1.0}),
        (Armijo, {"c1": 1.0}),
        *((kind, {"max_step": step}) for kind in (Wolfe, Armijo) for step in (0.0, -2.0, math.nan)),
        *((kind, {"max_evals": evals}) for kind in (Wolfe, Armijo) for evals in (0, -3)),
    ],
)
def test_bad_arguments_are_refused_by_name_and_value(kind, arguments):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        kind(**arguments)
    for name, value in arguments.items():
        assert name in str(refusal.value)
        assert repr(value) in str(refusal.value)


def test_torchs_search_cannot_find_the_papers_condition():
    with pytest.raises(ValueError, match="one-sided condition needs the search 'more-thuente', got 'zoom'"):
        Zoom(curvature="paper")


@pytest.mark.parametrize("arguments", [{"c1": 0.5, "c2": 0.5}, {"max_evals": 1}, {"max_step": 5e-324}])
def test_arguments_on_the_border_are_accepted(arguments):
    assert Wolfe(**arguments)


def test_the_searches_import_no_torch():
    """By syntax, because importing the package imports torch."""
    folder = Path(linesearch.__file__).parent
    for name in ("linesearch", "trials", "interpolate", "noise", "status", "failures"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {a.name for node in imports if isinstance(node, ast.Import) for a in node.names}
        names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
        own = {
            f"signedstep.{module}" for module in ("trials", "interpolate", "noise", "rounding", "status", "failures")
        }
        assert (
            names
            <= {"math", "enum", "sys", "typing", "dataclasses", "collections.abc", "contextlib", "traceback"} | own
        ), name


@pytest.mark.parametrize("search", [Wolfe(), Wolfe(curvature="weak"), Zoom()])
def test_a_search_ends_soon_where_steps_are_too_short_to_be_seen(search):
    """x is 1 to the last digit for t below 1e-2, and everything longer is a rise."""

    def phi(t):
        moved = (1 + 1e-14 * t) - 1
        return 3.0 + 1e16 * moved * moved, 0.1 * moved * 1e16 - 1e-16

    found = search(phi, *phi(0), 1.0)
    assert found.t == 0
    assert found.status is Status.STALLED
    assert found.evals <= 16
