"""What trial points raise: kept for the message, without the vectors that its frames hold."""

import gc

import torch

from cases import (
    bowl,
)
from signedstep import minimize
from signedstep.failures import attempted
from signedstep.line import Line


def test_what_raised_at_a_trial_point_holds_no_vectors():
    """Its frames made a cycle with the search and its line, until the garbage collector came."""
    calls = []

    def fun(x):
        calls.append(x)
        if len(calls) % 3 == 2:
            raise ValueError("beyond")
        return bowl(x)

    gc.collect()
    gc.disable()
    try:
        result = minimize(fun, torch.full((5,), 3.0), method="lbfgs", options={"maxiter": 20})
        lines = [each for each in gc.get_objects() if type(each) is Line]
    finally:
        gc.enable()
    assert result.nfev > 3
    assert not lines


def test_where_it_was_raised_stays_as_a_note():
    error = ValueError("no")

    def trial():
        raise error

    for _ in range(3):
        assert attempted(trial) == (None, error)
    assert error.__traceback__ is None
    assert len(error.__notes__) == 1
    assert "in trial" in error.__notes__[0]


def test_an_exception_that_cannot_be_shown_loses_no_result():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    def wall(x):
        if x[0] > 2:
            raise MuteError
        return float((x[0] - 3) ** 2), 2 * (x - 3)

    assert "MuteError" in minimize(wall, [0.0], jac=True, method="lbfgs").message
