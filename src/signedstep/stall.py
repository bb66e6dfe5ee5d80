"""When a run stands still."""

import math
from collections.abc import Sequence

from signedstep.rounding import UNITS


class Stall:
    """Notices that neither f nor the gradient has fallen, beyond rounding, nor steps have grown, for some iterations.

    Steps that grow come out of a narrow place: each is a multiple of the last, and f will follow.

    Gradients by finite differences have a resolution, the length of their steps. With them each search may find a
    little at the price of many evaluations. So shorter steps than that have to lower f by more than rounding, and two
    searches are enough that do not meet their conditions and find next to nothing.
    """

    patience = 10
    poor, crawling = 1e-6, 0.05
    """What is too little, relative to f, in one failed search, and in steps below the resolution."""

    def __init__(self, f: float, grad_norm: float, eps: float, resolution: float = 0.0):
        self.f, self.grad_norm, self.rounding, self.idle = f, grad_norm, UNITS * eps, 0
        self.resolution = resolution
        self.length = math.inf
        self.restarted = (math.inf, math.inf)  # f and the gradient at the last restart

    def sees(self, f: float, grad_norm: float, length: float, ok: bool = True) -> bool:
        """Take in where a step of some length has led; whether the run stands still.

        `ok` tells whether the conditions of the search hold that found it.
        """
        blind, failed = length < self.resolution, not ok and self.resolution > 0
        wanted = self.crawling if blind else self.poor if failed else self.rounding
        lower = f < self.f - wanted * abs(self.f)
        flatter = grad_norm < 0.9 * self.grad_norm and not blind
        if lower or flatter:
            self.f, self.grad_norm, self.idle = min(self.f, f), min(self.grad_norm, grad_norm), 0
            self.length = length
        elif length > 1.5 * self.length:
            self.length = length
        else:
            self.idle += self.patience // 2 if failed else 1
        return self.idle >= self.patience

    def deserves_a_restart(self) -> bool:
        """Whether a stall may be the model's fault: not if a restart has just led nowhere.

        If it may, the restart is taken as made, and counting begins anew.
        """
        f, grad_norm = self.restarted
        if self.f > f - 1e-3 * abs(f) and self.grad_norm > 0.5 * grad_norm:
            return False
        self.restarted, self.idle = (self.f, self.grad_norm), 0
        return True

    def state(self) -> list[float]:
        return [self.f, self.grad_norm, self.idle, self.length, *self.restarted]

    def restore(self, state: Sequence[float]) -> None:
        self.f, self.grad_norm, self.idle, self.length = state[0], state[1], int(state[2]), state[3]
        self.restarted = (state[4], state[5])
