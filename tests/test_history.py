"""The history of a run: one record per iteration, columns by name, and a data frame."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import signedstep
from cases import FUNCTION_METHODS, START, rosenbrock_with_gradient
from signedstep import History, Record, Status

RECORDS = [
    Record(1, 2.0, 3.0, 1.0, 0.9, 4, 0.1, True, Status.WOLFE),
    Record(2, 1.0, 0.5, -0.25, -0.1, 2, 0.2, False, Status.MAX_SEARCH),
]


@pytest.fixture
def history() -> History:
    return History(5.0, 7.0, RECORDS)


def saddle(x):
    """x^4/4 - x^2/2 + y^2/2, with its gradient."""
    return x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2 / 2, np.array([x[0] ** 3 - x[0], x[1]])


def test_it_is_a_sequence_of_records(history):
    assert len(history) == 2
    assert list(history) == RECORDS
    assert (history[0], history[-1], history[:1]) == (RECORDS[0], RECORDS[1], RECORDS[:1])
    assert RECORDS[1] in history
    with pytest.raises(IndexError):
        history[2]


@pytest.mark.parametrize("name", Record._fields)
def test_columns_by_attribute_and_by_name(history, name):
    expected = [getattr(record, name) for record in RECORDS]
    assert list(history[name]) == list(getattr(history, name)) == expected
    assert isinstance(history[name], np.ndarray)


@pytest.mark.parametrize("name", Record._fields)
def test_columns_of_an_empty_history_are_empty(name):
    assert History(5.0, 7.0)[name].shape == (0,)


def test_unknown_columns_are_refused_with_the_valid_names(history):
    for error, ask in ((KeyError, lambda: history["nope"]), (AttributeError, lambda: history.nope)):
        with pytest.raises(error, match="nope") as refused:
            ask()
        assert all(name in str(refused.value) for name in Record._fields)


def test_appending_does_not_touch_the_given_records(history):
    records = list(RECORDS)
    grown = History(5.0, 7.0, records)
    grown.append(RECORDS[0])
    assert (len(grown), len(records), len(history)) == (3, 2, 2)


def test_the_data_frame(history):
    frame = history.to_dataframe()
    assert isinstance(frame, pd.DataFrame)
    assert [frame.index.name, *frame.columns] == list(Record._fields)
    assert list(frame.index) == [1, 2]
    assert list(frame["alpha"]) == [1.0, -0.25]
    assert list(frame["status"]) == ["WOLFE", "MAX_SEARCH"]
    assert frame["learned"].dtype == bool


def test_the_data_frame_of_nothing():
    frame = History(5.0, 7.0).to_dataframe()
    assert frame.empty
    assert [frame.index.name, *frame.columns] == list(Record._fields)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda h: pickle.loads(pickle.dumps(h))])
def test_copies_and_pickles(history, twin):
    other = twin(history)
    assert list(other) == RECORDS
    assert (other.f0, other.grad_norm0) == (5.0, 7.0)


def test_repr_tells_the_length_and_both_ends(history):
    assert repr(history) == "<History of 2 iterations, f 5 -> 1>"
    assert repr(History(5.0, 7.0, RECORDS[:1])).startswith("<History of 1 iteration, f 5 -> ")
    assert repr(History(5.0, 7.0)) == "<History of 0 iterations, f 5>"


@pytest.mark.parametrize("method", FUNCTION_METHODS)
def test_the_history_of_a_run_adds_up(method):
    x0 = np.array([0.1, 1e-3])
    result = signedstep.minimize(saddle, x0, jac=True, method=method, options={"return_all": True, "maxiter": 50})
    history, iterates = result.history, result.allvecs
    f0, g0 = saddle(x0)
    assert (history.f0, history.grad_norm0) == (f0, pytest.approx(np.linalg.norm(g0)))
    assert list(history.k) == list(range(1, result.nit + 1))
    np.testing.assert_array_equal(history.f, [saddle(x)[0] for x in iterates[1:]])
    np.testing.assert_allclose(history.grad_norm, [np.linalg.norm(saddle(x)[1]) for x in iterates[1:]], rtol=1e-12)
    per_hessian = {"newton": len(x0), "newton-cg": 1}  # gradients that they take differences of
    differences = per_hessian.get(method.partition("/")[0], 0) * result.nhev
    assert sum(history.evals) + 1 + differences == result.njev
    assert np.all(history.evals[history.alpha != 0] >= 1)
    assert np.all(history.seconds > 0)
    for record, old, new in zip(history, iterates[:-1], iterates[1:], strict=True):
        assert (record.alpha != 0) == bool((old != new).any())
        moved, g = new - old, saddle(old)[1]
        if record.alpha:
            cosine = -g @ moved / np.linalg.norm(g) / np.linalg.norm(moved) * math.copysign(1, record.alpha)
            assert record.cosine == pytest.approx(cosine, abs=1e-6)


def test_negative_steps_occur_and_go_downhill():
    result = signedstep.minimize(rosenbrock_with_gradient, START, jac=True, method="lsr1/wolfe+-")
    backwards = result.history.alpha < 0
    assert backwards.any()
    assert np.all(result.history.cosine[backwards] < 0)
    assert np.all(np.diff([result.history.f0, *result.history.f])[backwards] < 0)


@pytest.mark.parametrize("name", [name for name in FUNCTION_METHODS if "wolfe+-" not in name and "/" in name])
def test_only_signed_searches_step_backwards(name):
    history = signedstep.minimize(rosenbrock_with_gradient, START, jac=True, method=name).history
    assert np.all(history.alpha >= 0)


def test_status_tells_whether_its_conditions_hold_or_the_run_converged():
    assert [status.name for status in Status if status.converged] == ["GRADIENT", "DECREASE", "STEP"]
    held = ["WOLFE", "APPROXIMATE_WOLFE", "ARMIJO", "APPROXIMATE_ARMIJO", "RATIO", "APPROXIMATE_RATIO"]
    assert [status.name for status in Status if status.ok] == held
    assert all(status.value.endswith(".") for status in Status)
