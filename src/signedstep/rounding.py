"""How much of a computed number may be rounding."""

UNITS = 8.0
"""Units in the last place up to which differences, of values and of sums, count as noise."""
FLOAT64 = UNITS * 2.0**-52
"""The same as a part of a number, in float64."""
