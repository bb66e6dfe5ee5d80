"""Tables as files: CSV with every number, LaTeX for papers, Markdown for pages."""

import csv
import io
from collections.abc import Sequence

from signedstep.experiments.panels import MEASURE_NAMES, label
from signedstep.experiments.tables import Entry, Table, number, printed, spread

FIELDS = (
    *("data", "measure", "limit", "method", "solver", "median", "lower_quartile", "upper_quartile"),
    *("seeds", "unfinished", "seconds", "dnf", "reason", "best", "paper"),
)
MISSING = "–"  # noqa: RUF001


def to_csv(tables: Sequence[Table]) -> str:
    """One line per cell, with unrounded numbers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for table in tables:
        for line in table.lines:
            for column, e in line.entries.items():
                measured = (label(column), e.solver, e.median, e.low, e.high, e.seeds, e.unfinished, e.seconds)
                marks = (int(e.dnf), e.reason, int(e.best), "" if e.printed is None else e.printed)
                writer.writerow((line.data, MEASURE_NAMES[table.measure], line.limit, *measured, *marks))
    return out.getvalue()


def to_markdown(table: Table) -> str:
    """A table for a page; a cell has our median, the quartiles and the paper's value."""
    head = ["data set", *(label(column) for column in table.columns)]
    lines = [_pipes(head), _pipes(["---"] * len(head))]
    for line in table.lines:
        cells = [_markdown_cell(line.entries[c], table.exact) if c in line.entries else MISSING for c in table.columns]
        lines.append(_pipes([line.data, *cells]))
    paper = ", [the paper's value]" if table.beside_paper else ""
    note = f"Training loss after {table.limits}: median over the seeds, (quartiles){paper}; best in bold."
    return "\n".join([*lines, "", note, ""])


def to_latex(table: Table) -> str:
    """A booktabs table; below a median stand its quartiles and, where there is one, the paper's value in grey."""
    head = " & ".join(["Data set", *(_tex(label(column)) for column in table.columns)])
    body = [_latex_lines(line.data, [line.entries.get(c) for c in table.columns], table.exact) for line in table.lines]
    paper = ", and the paper's value" if table.beside_paper else ""
    return "\n".join(
        [
            f"% Training loss after {table.limits}: median over the seeds, quartiles{paper}.",
            r"% Needs \usepackage{booktabs,xcolor}.",
            rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}",
            r"\toprule",
            head + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def ours(entry: Entry, exact: bool = False) -> str:
    """Our median as it is printed, or that it did not finish, and after which time; a refused run took none."""
    if not entry.dnf:
        return number(entry.median, exact)
    return f"DNF ({duration(entry.seconds)})" if entry.seconds else "DNF (not run)"


def duration(seconds: float) -> str:
    """A time with two digits, in seconds or milliseconds."""
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def _markdown_cell(entry: Entry, exact: bool) -> str:
    value, quartiles = ours(entry, exact), spread(entry, exact)
    value = f"**{value}**" if entry.best else value
    range_ = f" ({quartiles})" if quartiles and not entry.dnf else ""
    return value + range_ + (f" [{printed(entry)}]" if printed(entry) else "")


def _latex_lines(name: str, entries: Sequence[Entry | None], exact: bool) -> str:
    values, ranges, papers = [_tex(name)], [""], [r"\textcolor{gray}{\footnotesize paper}"]
    for e in entries:
        value = "" if e is None else _tex(ours(e, exact))
        values.append(rf"\textbf{{{value}}}" if e and e.best else value)
        range_ = "" if e is None or e.dnf else spread(e, exact)
        ranges.append(rf"{{\scriptsize {_tex(range_)}}}" if range_ else "")
        papers.append(rf"\textcolor{{gray}}{{\footnotesize {printed(e)}}}" if e and printed(e) else "")
    rows = [values, *(extra for extra in (ranges, papers) if any(extra[1:]))]
    return "\n".join(" & ".join(row) + r" \\" for row in rows) + r" \addlinespace"


def _tex(text: str) -> str:
    """Text for LaTeX without surprises."""
    special = {"\\": r"\textbackslash{}", "±": r"$\pm$", "³": r"$^3$", "–": "--", "∞": r"$\infty$"}  # noqa: RUF001
    special |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    special |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(sign, sign) for sign in text)


def _pipes(cells: Sequence[str]) -> str:
    escaped = [cell.replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"
