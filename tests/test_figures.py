"""The numbers behind the figures: Figure 1's directions, curves over seeds, strokes that tell methods apart."""

import math

import numpy as np
import pytest
import torch

import signedstep
from made_outcomes import ending_at, falling, only, outcome
from signedstep.experiments import figures, saddle
from signedstep.experiments.bench.solvers import PEERS
from signedstep.experiments.curves import curve
from signedstep.experiments.panels import ADAM_BEST, panels
from signedstep.experiments.runs import Network
from signedstep.experiments.solvers import SOLVERS
from signedstep.experiments.style import LIGHT, drawn_in, stroke
from signedstep.status import Status


def test_figure_1_the_negated_newton_direction_decreases_most():
    gradient, newton, negated = saddle.rays()
    assert newton.slope > 0 > gradient.slope
    assert (newton.step, newton.decrease, newton.lowest) == (0, 0, 0)
    assert negated.slope == -newton.slope
    assert negated.decrease > 2 * gradient.lowest
    assert negated.decrease > 2 * saddle.mixed()


def test_figure_1_is_what_the_methods_do():
    """One iteration from its point: with both signs along the negated direction, with positive ones not at all."""
    x0 = torch.tensor(saddle.POINT, dtype=torch.float64)
    first = {
        how: signedstep.minimize(saddle.f, x0, method=how, options={"maxiter": 1})
        for how in ("newton/wolfe", "newton/wolfe+-", "newton/flip", "newton/trust", "gd/wolfe")
    }
    decrease = {how: result.history.f0 - result.fun for how, result in first.items()}
    _, _, negated = saddle.rays()
    assert first["newton/wolfe"].status is Status.NOT_DESCENT
    assert first["newton/wolfe+-"].history[0].alpha < 0
    assert decrease["newton/wolfe+-"] == pytest.approx(negated.decrease, rel=1e-6)
    for other in ("newton/flip", "newton/trust", "gd/wolfe"):
        assert decrease["newton/wolfe+-"] > 1.2 * decrease[other] > 0


def test_figure_1_uses_the_exact_newton_direction():
    u, v = saddle.POINT
    g = np.array([4 * u * (u * u + v - 11) + 2 * (u + v * v - 7), 2 * (u * u + v - 11) + 4 * v * (u + v * v - 7)])
    H = np.array([[12 * u * u + 4 * v - 42, 4 * (u + v)], [4 * (u + v), 12 * v * v + 4 * u - 26]])
    p = -np.linalg.solve(H, g)
    _, newton, _ = saddle.rays()
    np.testing.assert_allclose(newton.direction, p / np.linalg.norm(p), rtol=1e-12)
    assert newton.slope == pytest.approx(g @ p / np.linalg.norm(p))


def test_the_map_agrees_with_the_rays():
    winner, uphill = saddle.winners(11)  # from -5 to 5 in steps of 1: [row of x2, column of x1]
    for row, column in ((7, 5), (2, 8), (9, 1)):
        point = (column - 5.0, row - 5.0)
        found = saddle.rays(point)
        assert winner[row, column] == int(np.argmax([ray.lowest for ray in found]))
        assert uphill[row, column] == (found[1].slope > 0)


def test_a_ray_is_followed_only_while_f_falls():
    x = torch.tensor([0.0, 0.0], dtype=torch.float64)
    up = -saddle.directions(x)[0]
    assert saddle._lowest(x, up) == 0


def test_curves_are_medians_that_stay_where_a_run_stopped():
    runs = [outcome("lsr1", [1.0, 0.6], seed=0), *ending_at("lsr1", [0.0, 0.2, 0.4])[1:]]
    found = curve(only(runs), "lsr1", "iterations")
    assert found is not None
    np.testing.assert_array_equal(found.x, [0, 1, 2, 3, 4])
    np.testing.assert_allclose(found.middle, [1, 0.8, 0.6, 0.55, 0.4])
    np.testing.assert_allclose(found.low, [1, 0.7, 0.6, 0.475, 0.3])
    by_evals = curve(only(runs), "lsr1", "evals")
    assert by_evals is not None
    assert (by_evals.x[0], by_evals.x[-1]) == (1, 8)
    np.testing.assert_allclose(by_evals.middle[:4], [1, 1, 0.8, 0.8])  # an iteration costs two evaluations


def test_curves_end_where_a_time_limit_or_a_divergence_came():
    late = outcome("gd", [1.0, 0.5, 0.4], finished=False, ended="The time limit of 60 s was reached.")
    found = curve(only([late]), "gd", "iterations")
    assert found is not None
    assert list(found.x) == [0, 1, 2]
    lost = outcome("gd", [1.0, 0.5, 0.4], finished=False, ended="Diverged: after iteration 3.")
    found = curve(only([lost]), "gd", "iterations")
    assert found is not None
    assert [math.isnan(value) for value in found.middle] == [False, False, False, True, True]
    assert curve(only([lost]), "lsr1", "iterations") is None


def test_no_two_methods_look_alike():
    """On a page of a study, or of the benchmark with all peers and the methods of ours that its documentation names."""
    for columns, adams in (
        (SOLVERS, ["adam-0.001", ADAM_BEST]),
        (["auto", "lbfgs", "lsr1/flip", "lsr1/wolfe+-", *PEERS], [ADAM_BEST]),
    ):
        together = [*(column for column in columns if not column.startswith("adam-")), *adams]
        looks = {(stroke(column).colour, stroke(column).dash) for column in together}
        assert len(looks) == len(together)


def test_figures_2_and_3_show_the_depths_of_heart():
    runs = [outcome("sr1-pn", falling(0.1), network=Network(hidden=hidden)) for hidden in (3, 1)]
    runs.append(outcome("sr1-pn", falling(0.1), data="a1a"))
    everything = panels(runs)
    assert [(panel.data, panel.network.hidden) for panel in figures.depths(everything)] == [("heart", 1), ("heart", 3)]
    with drawn_in(LIGHT):
        figure = figures.training_error(everything, LIGHT)
    assert figure is not None
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["heart, 1 hidden layer", "heart, 3 hidden layers"]
    (line,) = figure.axes[0].lines
    np.testing.assert_allclose(line.get_ydata(), falling(0.1))
    with drawn_in(LIGHT):
        signed = figures.steps(everything, LIGHT)
    assert signed is not None
    assert signed.axes[0].get_yscale() == "symlog"
    dots = [list(line.get_ydata()) for line in signed.axes[0].lines if line.get_label() == "SR1 (p+n)"]
    assert dots == [[-1, 1, -1, 1]]


def test_the_loss_curves_of_two_networks_are_told_apart_by_their_titles():
    networks = [Network(), Network(hidden=2), Network(hidden=2, width=5), Network(bias=False, scale=2, loss="logistic")]
    runs = [outcome("gd", falling(0.1), network=network) for network in networks]
    with drawn_in(LIGHT):
        drawn = [figures.losses(panel, LIGHT) for panel in panels(runs)]
    titles = {figure.get_suptitle() for figure in drawn if figure is not None}
    assert len(titles) == len(networks)
    assert "heart, 2 hidden layers of 5 tanh units, half the mean squared error" in titles
    assert "heart, 1 hidden layer of 10 tanh units, no biases, initial weights times 2, logistic loss" in titles


def test_figures_without_their_runs_are_left_out():
    everything = panels(ending_at("gd", [0.1]))
    for draw in (figures.training_error, figures.steps, figures.profile, figures.damping):
        assert draw(everything, LIGHT) is None
