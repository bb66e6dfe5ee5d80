"""Checks of what users pass in, which come back if they are right.

An error names the argument, what was given and what is accepted.
"""

import math
from collections.abc import Callable, Collection
from numbers import Real
from typing import Any


def check_number(name: str, value: Any, accepted: str, valid: Callable[[float], bool] = lambda number: True) -> float:
    """The value as a float, if it is a real number and `valid`; `accepted` describes what is."""
    number = as_float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if math.isnan(number):
        raise TypeError(f"{name} must be {accepted}, got {value!r}")
    if not valid(number):
        raise ValueError(f"{name} must be {accepted}, got {number if math.isinf(number) else value!r}")
    return number


def as_float(value: Any) -> float:
    """A real number as a float; integers may be larger than any."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_positive(name: str, value: Any) -> float:
    """A number above zero, and finite."""
    return check_number(name, value, "a positive number", lambda number: 0 < number < math.inf)


def check_at_least_zero(name: str, value: Any) -> float:
    """A number that is not negative."""
    return check_number(name, value, "a number that is not negative", lambda number: number >= 0)


def check_fraction(name: str, value: Any) -> float:
    """A number in [0, 1)."""
    return check_number(name, value, "a number in [0, 1)", lambda number: 0 <= number < 1)


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number, at least `least`."""
    accepted = f"a whole number, at least {least}"
    if not check_number(name, value, accepted).is_integer():
        raise TypeError(f"{name} must be {accepted}, got {value!r}")
    return int(check_number(name, value, accepted, lambda number: number >= least))


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of a few words."""
    if value not in tuple(choices):  # which may be a dict, and the value a list
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_flag(name: str, value: Any) -> bool:
    """True or False, not something that only counts as one of them."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value
