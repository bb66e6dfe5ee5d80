"""The loss of a module over data: a closure that also knows its Gauss-Newton, Fisher and Kronecker-factored matrices.

Products and factors are those of curvlinops (Dangel, Eschenhagen and others), an optional dependency.
"""

import functools
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from signedstep.closure import ClosureObjective
from signedstep.flat import Flat
from signedstep.kronecker import Block

LIKELIHOODS = (nn.MSELoss, nn.CrossEntropyLoss, nn.BCEWithLogitsLoss)
"""Losses that are negative log-likelihoods in their natural parameters: their Fisher is the Gauss-Newton matrix."""


class ModuleLoss:
    """The loss of `model` over `data`, for `minimize` and for the `step` of a torch optimizer.

    Called without arguments it returns the loss, as a closure does. `loss_func(model(X), y)` is a standard loss with
    reduction "mean" or "sum"; `data` is one batch (X, y) or several, as in a list or a DataLoader that does not
    shuffle: every pass must see the same numbers.
    """

    def __init__(self, model: nn.Module, loss_func: nn.Module, data: Iterable[Any]):
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {model!r}")
        if getattr(loss_func, "reduction", None) not in ("mean", "sum"):
            what = "a loss of torch.nn with the reduction 'mean' or 'sum', such as nn.CrossEntropyLoss()"
            raise ValueError(f"loss_func must be {what}, got {loss_func!r}")
        one = isinstance(data, tuple | list) and len(data) == 2 and isinstance(data[0], Tensor)
        self.model, self.loss_func = model, loss_func
        self.data: Iterable[Any] = [tuple(data)] if one else data
        if not isinstance(self.data, Iterable) or isinstance(self.data, Iterator | Tensor):
            once = ", which can be gone through only once" if isinstance(self.data, Iterator) else ""
            given = "a tensor" if isinstance(data, Tensor) else repr(data)
            raise TypeError(f"data must be a batch (X, y) or several, as in a list, got {given}{once}")
        sizes = [len(X) for X, _ in self.data]
        self.count = sum(sizes)
        if not self.count:
            raise ValueError("data holds no examples")
        if len(sizes) > 1 and loss_func.reduction == "mean" and self._weighs_examples():
            raise ValueError(
                "with class weights or ignored labels the mean over all examples is not that of the batches' means: "
                "pass one batch, or a loss_func with reduction='sum'"
            )

    def _weighs_examples(self) -> bool:
        """Whether some examples count more than others in a mean."""
        if not isinstance(self.loss_func, nn.CrossEntropyLoss | nn.NLLLoss):
            return False
        ignored = self.loss_func.ignore_index
        return self.loss_func.weight is not None or any(bool((y == ignored).any()) for _, y in self.data)

    def __call__(self) -> Tensor:
        mean = self.loss_func.reduction == "mean"
        parts = [self.loss_func(self.model(X), y) * (len(X) / self.count if mean else 1) for X, y in self.data]
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum()

    def bind(self, start: Tensor | None, shape: tuple[int, ...]) -> ClosureObjective:
        """The objective over all parameters of the module that are trained, from a flat vector; None: not a tensor."""
        flat = self._flat()
        n = sum(p.numel() for p in flat.params)
        if start is None or shape != (n,):
            raise ValueError(f"x0 of a ModuleLoss must be a tensor of its {n} parameters, as its x0 is, got {shape}")
        if (start.dtype, start.device) != (flat.dtype, flat.device):
            raise ValueError(
                f"x0 of a ModuleLoss must be {flat.dtype} on {flat.device} as its parameters are, "
                f"got {start.dtype} on {start.device}"
            )
        return ClosureObjective(flat, self)

    @property
    def x0(self) -> Tensor:
        """The parameters as they are now."""
        return self._flat().read()

    def gauss_newton(self, params: list[Tensor]) -> Any:
        """A linear operator over tensors like the parameters, at their present values."""
        return _library().GGNLinearOperator(*self._given(params), check_deterministic=False, num_data=self.count)

    def fisher(self, params: list[Tensor], samples: int) -> Any:
        """The Fisher information, or an estimate of it from some labels drawn at each example."""
        self._check_likelihood()
        if not samples:
            return self.gauss_newton(params)
        return _library().FisherMCLinearOperator(
            *self._given(params), check_deterministic=False, num_data=self.count, mc_samples=samples
        )

    def kronecker(self, params: list[Tensor], samples: int) -> list[Block]:
        """The factors of KFAC's blocks; weight and bias of a layer are one block."""
        self._check_likelihood()
        library = _library()
        try:
            kfac = library.KFACLinearOperator(
                *self._given(params),
                check_deterministic=False,
                num_data=self.count,
                fisher_type=library.FisherType.MC if samples else library.FisherType.TYPE2,
                mc_samples=samples or 1,
                separate_weight_and_bias=False,
            )
        except NotImplementedError as error:
            known = "linear and convolutional layers"
            raise NotImplementedError(f"kfac knows {known}, and this model trains others: use 'natural'") from error
        kfac.compute_kronecker_factors()
        factors = kfac.state_dict()
        inputs, gradients = factors["input_covariances"], factors["gradient_covariances"]
        mapping = library.KFACLinearOperator.compute_parameter_mapping(params, self.model)
        if len({i for at in mapping.values() for i in at.values()}) < sum(map(len, mapping.values())):
            raise ValueError("kfac has a block for each layer, and here two layers share a weight: use 'natural'")
        return [
            Block([at[name] for name in ("weight", "bias") if name in at], inputs.get(layer), gradients[layer])
            for layer, at in mapping.items()
        ]

    def _flat(self) -> Flat:
        return Flat(self.model.parameters())

    def _given(self, params: list[Tensor]) -> tuple[Any, ...]:
        for name, layer in self.model.named_modules():
            if layer.training and getattr(layer, "running_mean", None) is not None:
                raise ValueError(
                    f"layer {name!r}, a {type(layer).__name__}, writes its running statistics in training mode, so "
                    "curvature cannot be taken through it: call model.eval(), or make it with track_running_stats=False"
                )
        return self.model, self.loss_func, params, self.data

    def _check_likelihood(self) -> None:
        if not isinstance(self.loss_func, LIKELIHOODS):
            names = ", ".join(kind.__name__ for kind in LIKELIHOODS)
            raise TypeError(f"the Fisher information is that of a likelihood: {names}; got {self.loss_func!r}")


@functools.cache
def _library() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import curvlinops  # imports what uses torch.jit, and so does torch itself at its first forward derivative

            torch.func.jvp(torch.sin, (torch.zeros(1, device="cpu"),), (torch.ones(1, device="cpu"),))
    except ImportError as error:
        raise ImportError(
            "Gauss-Newton and Fisher matrices of modules need curvlinops: in a clone of signedstep, "
            "pip install '.[curvature]'"
        ) from error
    return curvlinops
