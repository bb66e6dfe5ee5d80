"""`signedstep data list | fetch | verify`: which data sets are here, get them, check them."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from signedstep.experiments.commands.common import add_data_dir, complain


def add(commands) -> None:
    """Declare the command."""
    parser = commands.add_parser("data", help="list, download and check the data sets", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="the data sets, and which of them load without network")
    listing.add_argument("--markdown", action="store_true", help="all that is known of the sets, as in docs/data.md")
    listing.set_defaults(act=_list)
    fetch = actions.add_parser("fetch", help="download data sets into the cache")
    fetch.add_argument("names", nargs="+", metavar="NAME", help="a data set, or all for those that are not here")
    fetch.set_defaults(act=_fetch)
    verify = actions.add_parser("verify", help="read and check every file of the data sets; status 1 if one is wrong")
    verify.add_argument("names", nargs="*", metavar="NAME", help="only these, which then must be here")
    verify.set_defaults(act=_verify)
    for action in (listing, fetch, verify):
        add_data_dir(action)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from signedstep.experiments.data import SETS, DataError

    unknown = [name for name in getattr(arguments, "names", ()) if name not in (*SETS, "all")]
    if unknown:
        return complain(f"NAME must be one of {', '.join(SETS)} or all, got {unknown[0]!r}")
    try:
        return arguments.act(arguments)
    except DataError as error:  # of SIGNEDSTEP_DATA; those of single sets are told where they are met
        return complain(error)


def _list(arguments: argparse.Namespace) -> int:
    from signedstep.experiments.data import SETS

    known = [
        (
            s.name,
            f"{s.rows} x {s.features}",
            ", ".join(f"{label}: {count}" for label, count in s.labels.items()),
            s.file or "(scikit-learn)",
            s.scaling,
            (s.sha256 or "")[:12] or ("none known" if s.file else ""),
        )
        for s in SETS.values()
    ]
    titles = ("name", "rows x features", "rows by label", "file on the page", "scaling", "sha256")
    if arguments.markdown:
        notes = (("source", "remark"), ["---"] * 2, *((s.source, s.remark) for s in SETS.values()))
        for row, note in zip((titles, ["---"] * len(titles), *known), notes, strict=True):
            print(f"| {' | '.join((*row, *note))} |")
        return 0
    here = [_where(name, arguments.data_dir) for name in SETS]
    _print_columns([(r[0], h, *r[1:3]) for r, h in zip((titles, *known), ("here", *here), strict=True)])
    print(
        f"\n{sum(map(bool, here))} of {len(SETS)} load without network; the others: signedstep data fetch NAME"
        "\nfiles, scaling, checksums and sources: signedstep data list --markdown"
    )
    return 0


def _where(name: str, data_dir: Path | None) -> str:
    from signedstep.experiments.data import SETS
    from signedstep.experiments.sources import copies

    if SETS[name].file is None:
        return "scikit-learn"
    return next((place.where for place in copies(SETS[name], data_dir)), "")


def _fetch(arguments: argparse.Namespace) -> int:
    from signedstep.experiments.data import SETS, DataError
    from signedstep.experiments.sources import fetch

    everything = [name for name in SETS if not _where(name, arguments.data_dir)]
    failed = 0
    for name in everything if "all" in arguments.names else arguments.names:
        where = _where(name, arguments.data_dir)
        if where in ("package", "scikit-learn"):
            print(f"{name}: nothing to fetch, it comes with {'this package' if where == 'package' else where}")
            continue
        try:
            print(f"{name}: {fetch(SETS[name])}", flush=True)
        except DataError as error:
            failed += 1
            print(f"{name}: {error}", file=sys.stderr)
    return 1 if failed else 0


def _verify(arguments: argparse.Namespace) -> int:
    from signedstep.experiments.data import SETS

    every = not arguments.names or "all" in arguments.names
    rows = [row for name in (SETS if every else arguments.names) for row in _verdicts(name, arguments.data_dir)]
    wrong = [row for row in rows if row[1] == "WRONG" or (row[1] == "not here" and not every)]
    _print_columns(rows)
    print(f"\n{len(wrong)} wrong" if wrong else "\nnothing wrong")
    return 1 if wrong else 0


def _verdicts(name: str, data_dir: Path | None) -> Iterable[Sequence[str]]:
    """For each file of the set: name, verdict, file and what is right or wrong with it."""
    from signedstep.experiments.data import SETS, DataError
    from signedstep.experiments.identity import checked, from_scikit_learn
    from signedstep.experiments.sources import Copy, copies

    dataset = SETS[name]
    found = list(copies(dataset, data_dir)) or ([Copy("scikit-learn", Path(name))] if dataset.file is None else [])
    if not found:
        yield name, "not here", "", dataset.url or ""
    for where, path in found:
        try:
            table = from_scikit_learn(dataset) if dataset.file is None else checked(dataset, path)
        except DataError as error:
            yield name, "WRONG", where, str(error)
            continue
        if dataset.content is None:
            evidence = "shape and rows by label; no checksum is known"
        elif dataset.sha256 is not None and table.sha256 != dataset.sha256:
            evidence = "all numbers; the text is laid out otherwise than the copy we know"
        else:
            evidence = "all numbers" if dataset.file is None else "all numbers and the text's sha256"
        yield name, "ok", where, evidence


def _print_columns(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
