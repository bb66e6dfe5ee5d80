"""The programs in examples/ show what they say; the one for several ranks runs in test_docs.py."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_minibatches_lower_the_loss_over_all_data(capsys):
    first, last = example("minibatch").main(epochs=5)
    assert last < 0.5 * first
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_the_physics_informed_network_learns_faster_with_mix(capsys):
    errors = example("pinn").main(calls=150)
    assert errors["signedstep.Mix"] < errors["torch.LBFGS"]
    assert errors["signedstep.LBFGS"] < 0.1
    assert capsys.readouterr().out.count("150 closure calls") == 3


def test_the_gaussian_process_is_fitted_from_every_start(capsys):
    results = example("gaussian_process").main()
    assert all(result.success for result in results)
    best = min(results, key=lambda result: result.fun)
    assert best.fun == pytest.approx(results[0].fun, abs=1e-6)
    lengths = best.x[:5].exp()
    assert lengths[4] == lengths.max()  # of the input that does not matter
    assert len(capsys.readouterr().out.splitlines()) == len(results)


def test_the_signal_is_found_in_its_intensities(capsys):
    results = example("phase_retrieval").main()
    ours = results["lsr1/wolfe+-"]
    assert (ours.history.alpha < 0).any()
    assert results["auto"].nfev < results["BFGS"].nfev
    assert all(result.fun < 1e-8 for result in results.values())
    assert f"{np.sum(ours.history.alpha < 0)} steps backwards" in capsys.readouterr().out
