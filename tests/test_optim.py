"""The torch.optim front: closures, what a step returns and leaves, options and endings."""

import math

import pytest
import torch
from torch import nn

import signedstep
from cases import FUNCTION_METHODS
from signedstep import Status
from training import CLASSES, Counted, assert_left_at, assert_same, batch, bowl, copies, fit, leaf, model

every_class = pytest.mark.parametrize("make", CLASSES)


@every_class
def test_the_documented_example_of_torch_runs_with_the_class_name_changed(make):
    net, loss_fn = model(), nn.MSELoss()
    dataset = [batch(), batch(1)]
    optimizer = make(net.parameters(), lr=1, max_iter=5, history_size=10, line_search_fn="strong_wolfe")
    first = sum(loss_fn(net(x), y).item() for x, y in dataset)
    for inputs, target in dataset * 3:

        def closure(inputs=inputs, target=target):
            optimizer.zero_grad()
            output = net(inputs)
            loss = loss_fn(output, target)
            loss.backward()
            return loss

        optimizer.step(closure)
    assert sum(loss_fn(net(x), y).item() for x, y in dataset) < 0.5 * first


def test_all_arguments_of_torch_are_taken_in_its_order():
    p = leaf(3.0, 4.0)
    ours = signedstep.LBFGS([p], 0.5, 7, 9, 1e-3, 1e-4, 11, "strong_wolfe")
    theirs = torch.optim.LBFGS([p], 0.5, 7, 9, 1e-3, 1e-4, 11, "strong_wolfe")
    for name in ("lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn"):
        assert ours.param_groups[0][name] == theirs.param_groups[0][name]
    assert signedstep.LBFGS([p], max_iter=40).param_groups[0]["max_eval"] == 50, "as torch has it"


@every_class
@pytest.mark.parametrize("steps", [1, 3])
def test_the_loss_and_gradient_left_are_those_of_the_point(make, steps):
    net = model()
    optimizer = make(net.parameters(), max_iter=4, max_eval=100)
    closure = Counted(fit(net), optimizer)
    returned = [optimizer.step(closure) for _ in range(steps)]
    assert_left_at(returned[-1], fit(net), list(net.parameters()))
    assert returned[-1] == min(closure.values)
    assert (returned[-1].dtype, returned[-1].requires_grad) == (torch.float64, False)
    assert optimizer.n_evals == closure.calls == steps + sum(optimizer.history.evals)
    assert optimizer.history.f0 == closure.values[0]
    assert optimizer.history.f[-1] == returned[-1]
    assert list(optimizer.history.k) == list(range(1, 4 * steps + 1))
    assert optimizer.history.grad_norm[-1] == pytest.approx(
        math.sqrt(sum(p.grad.square().sum().item() for p in net.parameters())), rel=1e-12
    )


@every_class
@pytest.mark.parametrize("maximize", [False, True])
def test_parameters_come_back_to_a_lowest_point_that_was_not_the_last_trial(make, maximize):
    """Searches that end without their conditions return an earlier trial; loss and gradient must be of that one."""
    p, sign = leaf(4.0, -3.0), -1 if maximize else 1
    optimizer = make([p], max_iter=1, max_linesearch=2, c2=1e-3, maximize=maximize)
    closure = Counted(lambda: sign * (bowl(p) + 5 * torch.sin(20 * p).sum()))
    left_behind = 0
    for _ in range(6):
        returned = optimizer.step(closure)
        left_behind += closure.values[-1] != returned.item()
        assert_left_at(returned, closure.loss, [p])
    assert left_behind


def test_all_styles_of_closures_give_the_same_run():
    def run(style):
        net = model()
        optimizer = signedstep.LSR1(net.parameters(), max_iter=8)
        loss = fit(net)

        def closure():
            if style == "only the loss":
                return loss()
            if style == "loss and aux":
                return loss(), "aux"
            if style != "gradients left in place":
                optimizer.zero_grad(set_to_none=style != "zeroed in place")
            value = loss()
            if style == "by hand":
                for p, g in zip(net.parameters(), torch.autograd.grad(value, list(net.parameters())), strict=True):
                    p.grad = g
            else:
                value.backward()
            if style == "detached":
                return value.detach()
            return value.item() if style in ("float", "by hand") else value

        returned = optimizer.step(closure)
        return returned, copies(net.parameters())

    reference, params = run("backward")
    styles = ["only the loss", "loss and aux", "float", "by hand", "detached", "zeroed in place"]
    for style in (*styles, "gradients left in place"):
        returned, reached = run(style)
        assert float(returned) == reference.item(), style
        assert isinstance(returned, float) == (style in ("float", "by hand"))
        assert_same(reached, params)


def test_gradients_that_belong_to_the_closure_are_not_written_into():
    """An expanded gradient cannot be written into, and a buffer of the user's must not be."""
    p = leaf(3.0, 4.0)
    ones, seen = torch.ones(1, dtype=torch.float64), []

    def closure():
        value = p.detach().sum().item()
        seen.append(value)
        p.grad = ones.expand(2)
        return value if value > 0 else math.nan

    returned = signedstep.LSR1([p], max_iter=3).step(closure)
    assert returned == p.detach().sum().item() == min(v for v in seen if v > 0) < 1
    assert torch.equal(ones, torch.ones(1, dtype=torch.float64))
    assert torch.equal(p.grad, torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("make", [signedstep.LSR1, signedstep.SR1])
def test_aux_is_that_of_the_accepted_point(make):
    p = leaf(4.0, -3.0)
    optimizer = make([p], max_iter=2, max_linesearch=3, c2=1e-3)
    assert optimizer.aux is None
    for _ in range(5):
        optimizer.step(lambda: (bowl(p) + torch.sin(8 * p).sum(), {"at": p.detach().clone()}))
        assert torch.equal(optimizer.aux["at"], p.detach())


def test_a_step_needs_a_closure_and_says_why():
    optimizer = signedstep.LSR1([leaf(1.0)])
    for nothing in ((), (None,)):
        with pytest.raises(TypeError, match=r"needs a closure .*optimizer\.step\(closure\)"):
            optimizer.step(*nothing)


@pytest.mark.parametrize("detach", [lambda loss: loss.item(), lambda loss: loss.detach()], ids=["float", "detached"])
def test_a_closure_without_gradients_is_no_convergence(detach):
    p = leaf(3.0, 4.0)
    optimizer = signedstep.LSR1([p])
    with pytest.raises(RuntimeError, match="closure left no gradient"):
        optimizer.step(lambda: detach(bowl(p)))
    assert not optimizer.status.converged


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (None, TypeError),
        (torch.ones(2), ValueError),
        ("low", TypeError),
        ((1.0, 2, 3), TypeError),
        ([torch.ones((), requires_grad=True), 2], TypeError),
        (1j, TypeError),
    ],
)
def test_a_closure_that_returns_no_number_is_an_error(returned, error):
    with pytest.raises(error, match="the closure must return a"):
        signedstep.LSR1([leaf(1.0)]).step(lambda: returned)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"speed": 3}, TypeError, "unknown options speed; known are lr, method, max_iter"),
        ({"maxiter": 3}, TypeError, "unknown options? maxiter.*did you mean max_iter"),
        ({"globaliztion": "flip"}, TypeError, "unknown options? globaliztion.*did you mean globalization"),
        ({"method": "lbfgs"}, TypeError, r"LSR1 has its method in its name; others: signedstep.SecondOrder\(params"),
        ({"weight_decay": 0.1}, TypeError, "weight decay is a term of the loss"),
        ({"lr": -1}, ValueError, "lr must be"),
        ({"lr": math.inf}, ValueError, "lr must be"),
        ({"lr": "fast"}, TypeError, "lr must be"),
        ({"lr": torch.tensor([0.1, 0.2])}, ValueError, "Tensor lr must be 1-element"),
        ({"max_iter": -1}, ValueError, "max_iter must be"),
        ({"max_iter": 1.5}, TypeError, "max_iter must be"),
        ({"max_eval": 0}, ValueError, "max_eval must be"),
        ({"tolerance_grad": math.nan}, TypeError, "tolerance_grad must be"),
        ({"tolerance_change": "x"}, TypeError, "tolerance_change must be"),
        ({"history_size": 0}, ValueError, "history_size must be"),
        ({"line_search_fn": "wolfe"}, ValueError, "line_search_fn must be one of None, 'strong_wolfe'"),
        ({"globalization": "hope"}, ValueError, "unknown method 'lsr1/hope'"),
        ({"c1": 0.95}, ValueError, "c1=0.95 and c2=0.9"),
        ({"c2": 1.5}, ValueError, "c2 must be"),
        ({"gamma": "nonsense"}, ValueError, "unknown gamma rule 'nonsense'"),
        ({"floor": 2}, ValueError, "floor must be"),
        ({"delta": -1}, ValueError, "delta must be"),
        ({"max_linesearch": 0}, ValueError, "max_linesearch must be"),
        ({"on_failure": "cry"}, ValueError, "on_failure must be"),
    ],
)
def test_wrong_options_are_refused_at_once_by_name(options, error, words):
    with pytest.raises(error, match=words):
        signedstep.LSR1([leaf(1.0)], **options)
    if not {"speed", "globalization", "globaliztion", "method"} & set(options):  # to a group most are labels
        with pytest.raises(error, match=words):
            signedstep.LSR1([{"params": [leaf(1.0)], **options}])


def test_labels_and_the_entries_of_schedulers_are_no_options_of_a_group():
    group = {"params": [leaf(1.0)], "name": "first", "initial_lr": 1.0, "weight_decay": 0}
    optimizer = signedstep.LSR1([group, {"params": [leaf(2.0)], "name": "second"}])
    assert [group["name"] for group in optimizer.param_groups] == ["first", "second"]


def test_any_method_by_name_and_none_but_those():
    p = leaf(3.0, 4.0)
    assert signedstep.SecondOrder([p]).param_groups[0]["method"] == "auto"
    for name in (name for name in FUNCTION_METHODS if name.partition("/")[0] != "newton"):
        optimizer = signedstep.SecondOrder([p], name, max_iter=2)
        before = bowl(p).item()
        assert optimizer.step(lambda: bowl(p)) < before, name
        p.data.copy_(torch.tensor([3.0, 4.0]))
    with pytest.raises(ValueError, match="unknown method 'adam'; valid are"):
        signedstep.SecondOrder([p], "adam")


@pytest.mark.parametrize("search", [None, "strong_wolfe", "weak_wolfe", "paper_wolfe", "armijo"])
def test_every_search_is_used(search):
    p = leaf(3.0, 4.0)
    optimizer = signedstep.LBFGS([p], line_search_fn=search, max_iter=3)
    optimizer.step(lambda: bowl(p))
    kind = Status.ARMIJO if search == "armijo" else Status.WOLFE
    assert {record.status for record in optimizer.history} == {kind}


def losses_of(make, **options):
    net = model()
    optimizer = make(net.parameters(), max_iter=40, max_eval=400, tolerance_change=0, history_size=7, **options)
    closure = Counted(fit(net), optimizer)
    optimizer.step(closure)
    return closure.values


def test_strong_wolfe_is_torchs_own_search_for_the_method_that_is_torchs():
    searched = {"line_search_fn": "strong_wolfe"}
    ours, theirs = losses_of(signedstep.LBFGS, **searched), losses_of(torch.optim.LBFGS, **searched)
    assert ours[:40] == pytest.approx(theirs[:40], rel=1e-7), "every trial, to rounding"
    assert ours == losses_of(signedstep.SecondOrder, method="lbfgs", **searched)
    assert ours == losses_of(signedstep.LBFGS, search="zoom")
    assert losses_of(signedstep.LBFGS, search="more-thuente", **searched) == losses_of(signedstep.LBFGS) != ours
    for make in (signedstep.LSR1, signedstep.BFGS):
        assert losses_of(make, **searched) == losses_of(make), "theirs is our own search"


@pytest.mark.parametrize("slope", [1e-3, 0.3, 50.0])
def test_the_first_step_of_strong_wolfe_is_that_of_torch(slope):
    """As long as the gradient, and of at most 1 in the sum of its entries."""
    tried = []
    for make in (signedstep.LBFGS, torch.optim.LBFGS):
        p, points = leaf(3.0, 4.0), []
        optimizer = make([p], max_iter=1, line_search_fn="strong_wolfe")
        optimizer.step(Counted(lambda p=p, points=points: points.append(p.tolist()) or slope * (p - 1).square().sum()))
        tried.append(points[1])
    assert tried[0] == pytest.approx(tried[1], rel=1e-12)
    assert tried[0] != [3.0, 4.0]


def test_status_tells_why_the_step_ended():
    p = leaf(3.0, 4.0)
    closure = Counted(lambda: bowl(p))

    def ended(**options):
        p.data.copy_(torch.tensor([3.0, 4.0]))
        optimizer = signedstep.LSR1([p], **options)
        assert optimizer.status is Status.RUNNING
        optimizer.step(closure)
        return optimizer.status

    assert ended(max_iter=2) is Status.MAXITER
    assert ended(max_eval=1) is Status.MAXFUN
    assert ended(tolerance_change=0.5) in (Status.DECREASE, Status.STEP)
    assert ended(tolerance_grad=1e-3, max_iter=50) is Status.GRADIENT
    assert p.grad.abs().max() <= 1e-3
    assert ended(lr=0) is Status.RUNNING


def test_max_eval_ends_a_step_between_iterations():
    p = leaf(3.0, 4.0, -2.0)
    optimizer = signedstep.LBFGS([p], max_iter=100, max_eval=6, tolerance_grad=0, tolerance_change=0)
    closure = Counted(lambda: bowl(p))
    optimizer.step(closure)
    last = optimizer.history[-1].evals
    assert closure.calls - last <= 6 < closure.calls + 2


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_the_loss_keeps_the_shape_that_the_closure_gives_it(shape):
    p = leaf(3.0, 4.0)
    returned = signedstep.LSR1([p]).step(lambda: bowl(p).reshape(shape))
    assert returned.shape == shape


def test_the_loss_keeps_its_precision_whatever_a_failed_trial_returns():
    p, calls = leaf(3.0, 4.0), []

    def closure():
        calls.append(1)
        return torch.tensor(math.inf, dtype=torch.float16) if len(calls) > 6 else bowl(p)

    returned = signedstep.LSR1([p]).step(closure)
    assert returned.dtype == torch.float64
    assert returned == bowl(p)


def test_a_loss_of_whole_numbers_is_returned_in_full():
    p = leaf(3.0)

    def closure():
        bowl(p).backward()
        return (1000 * bowl(p)).detach().round().to(torch.int64)

    optimizer = signedstep.LBFGS([p], max_iter=1)
    assert optimizer.step(closure) == optimizer.history.f[-1]
    assert isinstance(optimizer.history.f[-1], float)


@every_class
def test_tolerances_below_zero_switch_the_tests_off_as_in_torch(make):
    p = leaf(3.0, -4.0)
    optimizer = make([p], tolerance_grad=-1, tolerance_change=-1, max_iter=5)
    for _ in range(20):
        loss = optimizer.step(lambda: bowl(p))
    assert loss < 1e-12
    assert not optimizer.status.converged or p.grad.abs().max() == 0


@every_class
def test_no_iterations_are_one_evaluation(make):
    p = leaf(3.0, -4.0)
    closure = Counted(lambda: bowl(p))
    assert make([p], max_iter=0).step(closure) == bowl(p)
    assert closure.calls == 1
    assert p.tolist() == [3.0, -4.0]


def test_counters_are_there_within_the_first_step():
    """Programs for PINNs print them from the closure."""
    p, printed = leaf(3.0, 4.0), []
    optimizer = signedstep.LBFGS([p], max_iter=6)

    def closure():
        assert optimizer.state_dict()["state"][0]["func_evals"] == optimizer.state[p]["func_evals"] == len(printed) + 1
        printed.append(optimizer.state[p]["n_iter"])
        return ((p - 1) ** 4).sum()

    optimizer.step(closure)
    assert printed[0] == 0
    assert printed == sorted(printed)
    assert printed[-1] >= 3
    assert optimizer.state[p] == {"n_iter": len(optimizer.history), "func_evals": len(printed)}


def test_a_loss_that_was_differentiated_before_is_named():
    p = leaf(3.0, 4.0)
    loss = bowl(p)
    loss.backward()
    with pytest.raises(RuntimeError, match=r"has been called on it before: the closure must compute it anew"):
        signedstep.LSR1([p]).step(lambda: loss)
