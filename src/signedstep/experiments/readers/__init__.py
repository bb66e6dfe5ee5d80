"""Readers of users' data files: strict, bounded, and never a half-read data set."""

from signedstep.experiments.readers.files import has_columns, read
from signedstep.experiments.readers.table import LIMITS, DataError, Limits, Table

__all__ = ["LIMITS", "DataError", "Limits", "Table", "has_columns", "read"]
