"""Inside released frameworks: Lightning, DeepXDE on its PyTorch backend, and GPyTorch."""

import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import signedstep
from training import batch, fit, model

# Lightning


def lightning_parts():
    """A module with automatic optimization, its data and a silent trainer."""
    L = pytest.importorskip("lightning")
    X, y = batch(dtype=torch.float32)

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.losses = model(dtype=torch.float32), []

        def training_step(self, data, index):
            loss = fit(self.net, data)()
            self.log("loss", loss)
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            optimizer = signedstep.LSR1(self.parameters(), max_iter=4, max_eval=100)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.9)]

    def trainer(folder, **options):
        silent = ("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing")
        return L.Trainer(accelerator="cpu", default_root_dir=folder, **dict.fromkeys(silent, False), **options)

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=40)
    return Module, loader, trainer


def quiet(test):
    """Without the advice of Lightning, and what it does that torch advises against."""
    for message in ("The 'train_dataloader' does not have many workers", r"`isinstance\(treespec, LeafSpec\)`"):
        test = pytest.mark.filterwarnings(f"ignore:{message}")(test)
    return test


@quiet
def test_lightning_trains_with_automatic_optimization(tmp_path):
    Module, loader, trainer = lightning_parts()
    module = Module()
    trainer(tmp_path, max_epochs=8).fit(module, loader)
    optimizer = module.trainer.optimizers[0]
    assert isinstance(optimizer, signedstep.LSR1)
    assert optimizer.n_evals == len(module.losses)
    assert len(optimizer.history) == 32
    assert fit(module.net)().item() == pytest.approx(min(module.losses), rel=1e-6)
    assert min(module.losses) < 0.2 * module.losses[0]
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.9**4)


@quiet
def test_lightning_resumes_from_its_checkpoint(tmp_path):
    Module, loader, trainer = lightning_parts()
    whole, first, second = Module(), Module(), Module()
    trainer(tmp_path, max_epochs=6).fit(whole, loader)
    begun = trainer(tmp_path, max_epochs=3)
    begun.fit(first, loader)
    begun.save_checkpoint(tmp_path / "half.ckpt")
    trainer(tmp_path, max_epochs=6).fit(second, loader, ckpt_path=tmp_path / "half.ckpt")
    assert first.losses + second.losses == whole.losses
    assert second.trainer.optimizers[0].n_evals == len(whole.losses)


# DeepXDE

POISSON = """
import deepxde as dde
import numpy as np
import torch

import signedstep

torch.set_num_threads(1)
dde.config.set_random_seed(0)
dde.config.set_default_float("float64")

def residual(x, y):
    return -dde.grad.hessian(y, x) - np.pi**2 * torch.sin(np.pi * x)

def solution(x):
    return np.sin(np.pi * x)

interval = dde.geometry.Interval(-1, 1)
walls = dde.icbc.DirichletBC(interval, solution, lambda _, on_boundary: on_boundary)
data = dde.data.PDE(interval, residual, walls, 24, 2, solution=solution, num_test=100)
model = dde.Model(data, dde.nn.FNN([1, 20, 20, 1], "tanh", "Glorot uniform"))
optimizer = signedstep.LSR1(model.net.parameters(), max_iter=20, max_eval=10**6)
model.compile(optimizer, metrics=["l2 relative error"])
history, state = model.train(iterations=10, display_every=10, verbose=0)
assert optimizer.state_dict()["state"][0]["n_iter"] <= 200
print("error", np.ravel(history.metrics_test)[-1])
"""


def test_deepxde_solves_a_poisson_problem():
    if find_spec("deepxde") is None:
        pytest.skip("needs deepxde")
    source = str(Path(signedstep.__file__).parents[1])
    environment = {**os.environ, "DDE_BACKEND": "pytorch", "PYTHONPATH": source, "MPLBACKEND": "agg"}
    run = subprocess.run([sys.executable, "-c", POISSON], env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout.rsplit("error", 1)[1]) < 1e-2, run.stdout


# GPyTorch


def gaussian_process():
    """An exact GP with an RBF kernel on a noisy sine: parameters, negative log likelihood."""
    gpytorch = pytest.importorskip("gpytorch")
    x = torch.linspace(0, 1, 40, dtype=torch.float64)
    y = torch.sin(6 * x) + 0.1 * torch.randn(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    class Process(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, z):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(z), self.covar_module(z))

    process = Process(gpytorch.likelihoods.GaussianLikelihood()).double().train()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(process.likelihood, process)
    return process.parameters(), lambda: -likelihood(process(x), y)


class Enough(BaseException):
    """The closure calls are used up."""


def fitted(make, calls):
    """The first and the lowest loss within a number of closure calls."""
    params, loss = gaussian_process()
    optimizer = make(params, max_iter=calls, max_eval=calls, line_search_fn="strong_wolfe", history_size=10)
    losses = []

    def closure():
        if len(losses) == calls:
            raise Enough
        optimizer.zero_grad()
        value = loss()
        value.backward()
        losses.append(value.item())
        return value

    with suppress(Enough):
        optimizer.step(closure)
    assert loss().item() == pytest.approx(min(losses), rel=1e-9) or make is torch.optim.LBFGS
    return losses[0], min(losses)


@pytest.mark.parametrize("make", [signedstep.LBFGS, signedstep.LSR1, signedstep.BFGS])
@pytest.mark.parametrize("calls", [10, 20, 40])
def test_gpytorch_fits_an_exact_process(make, calls):
    start, lowest = fitted(make, calls)
    _, reference = fitted(torch.optim.LBFGS, calls)
    assert lowest < start - 0.5
    assert lowest <= reference + 0.01
