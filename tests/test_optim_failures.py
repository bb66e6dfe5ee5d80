"""Nothing is lost: closures that raise, are not finite, run out of memory or are interrupted."""

import math
import sys
import weakref

import pytest
import torch

import signedstep
from signedstep import Status
from training import CLASSES, FailsAt, assert_left_at, assert_same, bowl, copies, fit, leaf, model, raising

every_class = pytest.mark.parametrize("make", CLASSES)
ERRORS = [ValueError("mine"), ZeroDivisionError, MemoryError, torch.OutOfMemoryError("no memory"), StopIteration]
INSTEAD = {
    **{type(e() if isinstance(e, type) else e).__name__: raising(e) for e in ERRORS},
    "NaN": lambda: math.nan,
    "inf": lambda: torch.tensor(math.inf),
    "-inf": lambda: -math.inf,
    "no number": lambda: None,
}
INTERRUPTS = [KeyboardInterrupt, SystemExit]


def barrier(x):
    """The function on which torch.optim.LBFGS raises IndexError."""
    return -torch.log(x[0]) + 10 * x[0] ** 2 + (x[1] - 1) ** 2


def half_space(x):
    """Not a number beyond a wall, and the way to the minimum leads along it."""
    return (x[0] + 0.1 * x[1]) ** 2 + (x[1] - 3) ** 2 + 0 * torch.sqrt(x[0] + 0.5)


def raises_beyond(x):
    if x[0] > 2:
        raise ValueError("beyond the wall")
    return (x[0] - 2.1) ** 2 + 5 * (x[1] - x[0]) ** 2


CRASHES = {
    "barrier": (barrier, (1e-3, 5.0)),
    "half space": (half_space, (5.0, 5.0)),
    "wall": (raises_beyond, (-5.0, 7.0)),
}


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@every_class
@pytest.mark.parametrize("crash", CRASHES)
def test_what_crashes_others_ends_at_a_finite_lower_loss(make, crash, search):
    function, start = CRASHES[crash]
    x = leaf(*start)
    optimizer = make([x], max_iter=50, line_search_fn=search)
    before = function(x).item()
    for _ in range(3):
        returned = optimizer.step(lambda: function(x))
        assert_left_at(returned, lambda: function(x), [x])
    best = {"barrier": function(leaf(20**-0.5, 1.0)).item(), "half space": 0.0, "wall": 0.01}[crash]
    assert x.isfinite().all()
    assert returned.item() <= best + 0.02 * (before - best)


def test_torch_still_crashes_on_the_first_of_them():
    """Else the documentation must change."""
    x = leaf(1e-3, 5.0)
    optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=50)

    def closure():
        optimizer.zero_grad()
        loss = barrier(x)
        loss.backward()
        return loss

    try:
        lost = not math.isfinite(optimizer.step(closure)) or not x.isfinite().all()
    except IndexError:
        lost = True
    assert lost


@every_class
@pytest.mark.parametrize("instead", INSTEAD)
def test_a_failed_trial_only_shortens_the_step(make, instead):
    for call in (2, 3, 4, 7):
        net = model()
        params = list(net.parameters())
        optimizer = make(params, max_iter=10, max_eval=100)
        closure = FailsAt(fit(net), INSTEAD[instead], call)
        before = fit(net)().item()
        returned = optimizer.step(closure)
        assert closure.calls > call, "it goes on"
        assert_left_at(returned, fit(net), params)
        assert returned.item() < before
        assert optimizer.n_evals == closure.calls
        assert list(optimizer.history.f) == sorted(optimizer.history.f, reverse=True)


@every_class
@pytest.mark.parametrize("instead", INSTEAD)
def test_where_every_trial_fails_the_parameters_stay(make, instead):
    net = model()
    params = list(net.parameters())
    optimizer = make(params, max_iter=10)
    optimizer.step(fit(net))
    before, first = copies(params), []

    def closure():
        if first:
            return INSTEAD[instead]()
        first.append(True)
        return fit(net)()

    returned = optimizer.step(closure)
    assert_same(params, before)
    assert_left_at(returned, fit(net), params)
    assert optimizer.status is Status.WALL
    others = {"NaN": "NoneType", "inf": "NoneType", "-inf": "NoneType", "no number": "TypeError"}
    assert type(optimizer.error).__name__ == others.get(instead, instead)
    assert optimizer.step(fit(net)) < returned, "and the next step goes on"
    assert optimizer.error is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_a_failed_trial(bad):
    p, calls = leaf(3.0, 4.0), []

    def closure():
        loss = bowl(p)
        loss.backward()
        calls.append(loss.item())
        if len(calls) in (2, 5):
            p.grad[0] = bad
        return loss

    returned = signedstep.LSR1([p], max_iter=10).step(closure)
    assert_left_at(returned, lambda: bowl(p), [p])
    assert returned < calls[0]


@every_class
@pytest.mark.parametrize("error", [*ERRORS, *INTERRUPTS])
@pytest.mark.parametrize("step", [1, 2])
def test_an_error_at_the_first_evaluation_propagates_and_restores(make, error, step):
    net = model()
    optimizer = make(net.parameters(), max_iter=3)
    if step == 2:
        optimizer.step(fit(net))
    before, calls = copies(net.parameters()), optimizer.n_evals

    def closure():
        with torch.no_grad():
            next(net.parameters()).add_(1)
        raising(error)()

    with pytest.raises(error if isinstance(error, type) else type(error)):
        optimizer.step(closure)
    assert_same(net.parameters(), before)
    assert optimizer.n_evals == calls + 1
    assert step == 1 or optimizer.state_dict()["state"][0]["func_evals"] == calls + 1
    loss = fit(net)().item()
    assert optimizer.step(fit(net)) < loss


@pytest.mark.parametrize("where", ["changed", "loaded", "half"])
def test_parameters_set_from_outside_are_what_is_restored(where):
    p = leaf(3.0, 4.0, dtype=torch.bfloat16 if where == "half" else torch.float64)
    optimizer = signedstep.LSR1([p], max_iter=3)
    optimizer.step(lambda: bowl(p))
    if where == "loaded":
        saved, optimizer = optimizer.state_dict(), signedstep.LSR1([p])
        optimizer.load_state_dict(saved)
    p.data.copy_(torch.tensor([7.0, 8.0]))
    with pytest.raises(ValueError, match="mine"):
        optimizer.step(raising(ValueError("mine")))
    assert p.tolist() == [7, 8]
    before = bowl(p).item()
    assert optimizer.step(lambda: bowl(p)) < before


@every_class
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_start_that_is_not_finite_moves_nothing(make, bad):
    net = model()
    optimizer = make(net.parameters(), max_iter=3)
    for good_steps in range(2):
        before = copies(net.parameters())
        returned = optimizer.step(lambda: fit(net)() * 0 + bad)
        assert_same(net.parameters(), before)
        assert (math.isfinite(returned), optimizer.status) == (False, Status.BAD_START)
        assert len(optimizer.history) <= 3 * good_steps
        loss = fit(net)().item()
        assert optimizer.step(fit(net)) < loss, "and recovers"


@every_class
@pytest.mark.parametrize(("interrupt", "call"), [(KeyboardInterrupt, k) for k in range(1, 16)] + [(SystemExit, 5)])
def test_interrupted_anywhere_it_stands_at_the_best_point_and_goes_on(make, interrupt, call):
    net = model()
    params = list(net.parameters())
    optimizer = make(params, max_iter=20)
    closure = FailsAt(fit(net), raising(interrupt), call)
    start = fit(net)().item()
    with pytest.raises(interrupt):
        optimizer.step(closure)
    assert optimizer.n_evals == closure.calls == call
    reached = fit(net)().item()
    assert reached == min([start, *optimizer.history.f])
    if call > 1:
        assert_left_at(reached, fit(net), params)
    assert optimizer.step(closure) < reached
    assert optimizer.n_evals == closure.calls


@every_class
def test_an_interrupted_run_does_not_lose_what_it_learned(make):
    """Interrupted, or not: the same iterates, since nothing is committed before a step is accepted."""

    def run(*interrupts):
        net = model()
        optimizer = make(net.parameters(), max_iter=4, max_eval=100)
        closure = FailsAt(fit(net), raising(KeyboardInterrupt), *interrupts)
        while len(optimizer.history) < 8:
            try:
                optimizer.param_groups[0]["max_iter"] = 8 - len(optimizer.history)
                optimizer.step(closure)
            except KeyboardInterrupt:
                pass
        return list(optimizer.history.f)

    assert run(4, 7, 9) == run()


@pytest.mark.parametrize("make", [*CLASSES, signedstep.Mix])
def test_a_model_that_is_interrupted_while_it_learns_starts_again(make):
    """Half of it is old and half new then, and of other sizes: every later step failed."""
    line = 1
    while True:
        net = model()
        optimizer = make(net.parameters(), max_iter=3)
        optimizer.step(fit(net))
        optimizer.param_groups[0]["max_iter"] = 1
        if not interrupted_at(line, lambda: optimizer.step(fit(net))):  # noqa: B023
            break
        reached = fit(net)().item()
        assert optimizer.step(fit(net)) < reached
        assert len(optimizer.state_dict()["state"]) == 1
        line += 3
    assert line > 9


def interrupted_at(line, run):
    """Interrupt a model that learns at a line, counted from its first; whether there were so many."""
    left = line

    def lines(frame, event, _):
        nonlocal left
        left -= event == "line"
        if left == 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return lines

    def calls(frame, *_):
        name = frame.f_code.co_name
        inside = name == "update" or (frame.f_back is not None and frame.f_back.f_trace is not None)
        return lines if inside and "signedstep" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_what_ran_out_of_memory_is_let_go_before_the_next_trial():
    p, held, alive = leaf(3.0, 4.0), [], []

    def closure():
        alive.append([reference() is not None for reference in held])
        if len(alive) in (2, 3):
            activations = torch.zeros(1000)
            held.append(weakref.ref(activations))
            raise torch.OutOfMemoryError
        return bowl(p)

    signedstep.LSR1([p], max_iter=3).step(closure)
    assert len(alive[-1]) == 2
    assert not any(map(any, alive))


@every_class
def test_a_closure_of_another_model_is_named_as_that(make):
    net, other = model(), model(1)
    optimizer = make(net.parameters())

    def closure():
        optimizer.zero_grad()
        loss = fit(other)()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="depends on none of the parameters"):
        optimizer.step(closure)


def test_an_infinite_first_loss_excuses_no_later_failure():
    """What is left of it is not rounding: searches that failed for another reason were called stalled."""
    p = leaf(3.0, 4.0)
    optimizer = signedstep.LBFGS([p])
    optimizer.step(lambda: (p * math.inf).sum())
    assert optimizer.status is Status.BAD_START

    def uphill():
        p.grad = -2 * p.detach()
        return bowl(p).detach()

    optimizer.step(uphill)
    assert optimizer.status is Status.CONTRADICTION


def test_what_the_caller_was_handling_keeps_its_traceback():
    """It is the context of all that is raised at a trial, but none of the run's."""
    net = model()
    optimizer = signedstep.LBFGS(net.parameters(), max_iter=3, max_eval=20)

    def train(batch):
        raise RuntimeError(f"no such batch: {batch}")

    def trained():
        try:
            train([1, 2])
        except RuntimeError:
            optimizer.step(FailsAt(fit(net), raising(ValueError("trial")), 2))
            raise

    with pytest.raises(RuntimeError, match="no such batch") as caught:
        trained()
    assert len(optimizer.history) == 3
    assert caught.traceback[-1].frame.f_locals["batch"] == [1, 2]


class ClosedError(Exception):
    """Nobody may change it."""

    def __setattr__(self, name, value):
        raise AttributeError(f"{name} is not to be set")


@every_class
def test_exceptions_that_let_nobody_change_them_are_failed_trials(make):
    net = model()
    optimizer = make(net.parameters(), max_iter=3, max_eval=20)
    optimizer.step(FailsAt(fit(net), raising(ClosedError("mine")), 2))
    assert len(optimizer.history) == 3


def test_parameters_that_became_infinite_are_no_convergence():
    p = leaf(1.0, 2.0)
    optimizer = signedstep.LSR1([p], max_iter=2)
    optimizer.step(lambda: torch.sigmoid(-p).sum())
    p.data.fill_(math.inf)
    optimizer.step(lambda: torch.sigmoid(-p).sum())
    assert not optimizer.status.converged
