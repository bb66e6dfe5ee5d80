"""What the solvers of the studies really run with, and that the report and the documentation say so."""

from pathlib import Path

import pytest
import torch

from conftest import evaluated
from made_outcomes import ending_at
from signedstep.experiments.solvers import FIRST_ORDER, SOLVERS
from signedstep.linesearch import Signed
from signedstep.methods import build
from signedstep.space import Space
from signedstep.tensors import TorchObjective
from test_report import own_text, rendered, words

LINE_SEARCHES = [name for name, solver in SOLVERS.items() if solver.method not in FIRST_ORDER]


def made(method, options, n=10):
    return build(method, torch.zeros(n, dtype=torch.float64), Space(), options)


def search(parts):
    found = parts.globalization.search
    return found.search if isinstance(found, Signed) else found


def pairs(parts, n):
    """How many pairs a model keeps on n unknowns."""
    x = torch.ones(n, dtype=torch.float64)
    objective = TorchObjective(lambda x: (x**2).sum(), None, (), (n,))
    parts.curvature.start(objective, evaluated(lambda x: (x**2).sum(), x))
    return parts.curvature.m


@pytest.mark.parametrize("name", LINE_SEARCHES)
def test_all_have_the_same_constants_and_pairs(name):
    parts = made(SOLVERS[name].method, SOLVERS[name].options)
    assert (search(parts).c1, search(parts).c2) == (1e-4, 0.9)
    assert search(parts).curvature == ("weak" if name == "mix" else "strong")
    if hasattr(parts.curvature, "m"):
        assert pairs(parts, 10) == 10


def test_where_mix_is_not_quite_our_default_that_is_said():
    default = made("auto", {})
    assert made(SOLVERS["mix"].method, {}).name == default.name
    assert (search(default).c2, search(default).curvature) == (0.999, "weak")
    assert (pairs(default, 2000), pairs(made("auto", {}), 2001)) == (50, 20)
    html = own_text(rendered([*ending_at("gd", [0.2]), *ending_at("mix", [0.1])], comparison=True))
    text = words(html.partition('<table class="methods">')[2])
    assert "All line searches have the same constants here (c1 = 0.0001, c2 = 0.9, history_size = 10)" in text
    assert 'mix (auto) too, though method="auto" has others, which its row names' in text
    assert "c2 = 0.999 and m = 50 (20 above 2000 unknowns)" in text
    assert "mix (auto)" not in words(own_text(rendered(ending_at("gd", [0.2]), comparison=True)))
    page = " ".join((Path(__file__).parent.parent / "docs" / "reproduction.md").read_text().split())
    assert "c2 = 0.999 and m = 50 (20 above 2000 unknowns)" in SOLVERS["mix"].text
    assert "whose own c₂ is 0.999 and which keeps 50 pairs up to 2000 unknowns and 20 above" in page
