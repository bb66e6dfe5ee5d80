"""Why something ended, as sentences a user can read: the vocabulary of searches, steps and whole runs."""

from enum import Enum


class Status(Enum):
    """Why a search, an iteration or a whole run ended; `value` is the sentence shown to the user.

    `record.status` of a history is that of one iteration. `ok` tells whether the conditions hold that its step was
    asked to satisfy: WOLFE, ARMIJO, RATIO (of trust regions and cubic), or APPROXIMATE_ of them where differences of f
    are below rounding. If not, the lowest point seen may still have been a useful step.

    `result.status`, or `optimizer.status`, is that of a run. `converged` tells whether one of its tests holds:
    GRADIENT, DECREASE or STEP. docs/minimize.md says what the others mean.
    """

    # The conditions hold that a step was asked to satisfy.
    WOLFE = "The Wolfe conditions hold."
    APPROXIMATE_WOLFE = "The approximate Wolfe conditions hold; differences of f are below rounding."
    ARMIJO = "The Armijo condition holds."
    APPROXIMATE_ARMIJO = "The approximate Armijo condition holds; differences of f are below rounding."

    RATIO = "The decrease of f is in proportion to the model's."
    APPROXIMATE_RATIO = "The slopes agree with the model's decrease; differences of f are below rounding."

    # They do not hold, and why; the lowest point seen may still be a useful step.
    NOT_DESCENT = "The direction does not point downhill and only positive steps are allowed."
    MAX_STEP = "The search reached its longest step with f still falling."
    MAX_SEARCH = "The search used up its evaluations before its conditions held."
    NARROW = "The search interval shrank to working precision before the conditions held."
    WALL = "The objective is not finite, or raises, beyond the lowest point found along the direction."
    NO_LOWER_POINT = "No lower point was found along the direction."
    CONTRADICTION = "The objective rises where its gradient says that it falls: a wrong gradient, or f is not smooth."

    # The run converged.
    GRADIENT = "Converged: the largest entry of the gradient is within its tolerance."
    DECREASE = "Converged: the relative decrease of f is within its tolerance."
    STEP = "Converged: the relative length of the step is within its tolerance."

    # The run ended otherwise.
    RUNNING = "Still running."
    STALLED = "Stalled at working precision: differences of f along the direction are below rounding."
    UNBOUNDED = "The objective seems unbounded below: the longest step was reached again and again, f still falling."
    MAXITER = "The maximum number of iterations was reached."
    MAXFUN = "The maximum number of function evaluations was reached."
    CALLBACK = "The callback asked to stop."
    BAD_START = "The objective or its gradient is not finite, or overflows when squared, at the starting point."

    @property
    def ok(self) -> bool:
        """True where the conditions of the search hold."""
        return self in _CONDITIONS_HOLD

    @property
    def converged(self) -> bool:
        """True where a convergence test of the run holds."""
        return self in _CONVERGED


_CONDITIONS_HOLD = frozenset(
    {
        Status.WOLFE,
        Status.APPROXIMATE_WOLFE,
        Status.ARMIJO,
        Status.APPROXIMATE_ARMIJO,
        Status.RATIO,
        Status.APPROXIMATE_RATIO,
    }
)
_CONVERGED = frozenset({Status.GRADIENT, Status.DECREASE, Status.STEP})
