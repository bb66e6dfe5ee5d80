"""Where data sets come from: a folder of the user's, the package, the cache, LIBSVM's page."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from signedstep.experiments.identity import checked
from signedstep.experiments.readers import DataError
from signedstep.experiments.readers.lines import COMPRESSIONS
from signedstep.experiments.sets import DataSet

VARIABLE = "SIGNEDSTEP_DATA"
PACKAGED = Path(__file__).parent / "datasets"
STALE = 3600
"""Seconds after which a temporary file in the cache was left by a download that was killed."""
TIMEOUT = 30


class Copy(NamedTuple):
    """A file that should hold a data set, and which of the sources it is in."""

    where: str
    path: Path


def copies(dataset: DataSet, data_dir: Path | None = None) -> Iterator[Copy]:
    """The files that should hold the set, in the order of the sources; scikit-learn's sets are in none."""
    if dataset.file is None:
        return
    # The page's name first: the page also has a `heart` and an `ijcnn1` that are other data than Table 1's.
    names = dict.fromkeys((dataset.file.removesuffix(".bz2"), dataset.name))
    for where, folder in _folders(data_dir):
        for path in (folder / f"{name}{ending}" for name in names for ending in ("", *COMPRESSIONS)):
            if path.is_file():
                yield Copy(where, path)


def _folders(data_dir: Path | None) -> Iterator[tuple[str, Path]]:
    given = data_dir or os.environ.get(VARIABLE)
    if given:
        if not Path(given).is_dir():
            raise DataError(f"{'data_dir' if data_dir else VARIABLE} must be a folder, got {str(given)!r}")
        yield "data folder", Path(given)
    yield "package", PACKAGED
    yield "cache", cache()


def cache() -> Path:
    """Where downloads are kept."""
    import pooch  # here, since it costs a tenth of a second

    return Path(pooch.os_cache("signedstep"))


def fetch(dataset: DataSet) -> Path:
    """The file of the set in the cache, downloaded if it is not there or not right.

    A download is checked under a temporary name and moved to its own only then, so no other file ever has that name.
    """
    import pooch
    import requests

    if dataset.url is None or dataset.file is None:
        raise DataError(f"{dataset.name} is part of scikit-learn, there is nothing to download")
    path = cache() / dataset.file
    _clear(dataset, path)
    pooch.get_logger().setLevel("WARNING")  # it would advise to note the checksum of what was downloaded
    try:
        pooch.retrieve(dataset.url, None, path.name, path.parent, downloader=_downloader(dataset))
    except requests.ConnectionError as error:
        raise DataError(
            f"{dataset.url}: the server cannot be reached. Without network, put the file into a folder "
            f"and name that with --data-dir or {VARIABLE}"
        ) from error
    except OSError as error:
        raise DataError(f"{dataset.url}: the download failed: {error}") from error
    return path


def _clear(dataset: DataSet, path: Path) -> None:
    """Remove a file that is not the set, and what killed downloads left."""
    for left in path.parent.glob("tmp*"):
        if time.time() - left.stat().st_mtime > STALE:
            left.unlink(missing_ok=True)
    if path.is_file():
        try:
            checked(dataset, path)
        except DataError:
            path.unlink(missing_ok=True)


def _downloader(dataset: DataSet) -> Any:
    """What pooch calls to fill its temporary file; an exception from it makes pooch remove the file."""
    import pooch

    def download(url: str, path: str, _: Any) -> None:
        pooch.HTTPDownloader(timeout=TIMEOUT)(url, path, None)
        checked(dataset, Path(path), shown=url)

    return download
