"""Lines of text files, plain or compressed, with bounds on what they may cost."""

import bz2
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from signedstep.experiments.readers.table import DataError, Limits

BLOCK = 2**18
LZMA_MEMORY = 2**28  # xz -9 needs 65 MiB; a hostile header may ask for 4 GiB
DAMAGE = (OSError, EOFError, lzma.LZMAError, zlib.error)

Decoder = bz2.BZ2Decompressor | lzma.LZMADecompressor


def _plain(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(BLOCK), b"")


def _gunzipped(file: BinaryIO) -> Iterator[bytes]:
    return _plain(gzip.GzipFile(fileobj=file, mode="rb"))  # type: ignore[arg-type]


def _decoded(decoder: Callable[[], Decoder]) -> Callable[[BinaryIO], Iterator[bytes]]:
    """A decompressor of concatenated streams; rubbish behind them is an error, unlike in the standard library."""

    def blocks(file: BinaryIO) -> Iterator[bytes]:
        stream = decoder()
        while True:
            given = b""
            if stream.eof:
                given = stream.unused_data
                while not given.strip(b"\0"):  # padding is allowed
                    given = file.read(BLOCK)
                    if not given:
                        return
                stream, given = decoder(), given.lstrip(b"\0")
            elif stream.needs_input:
                given = file.read(BLOCK)
                if not given:
                    raise EOFError("its end is missing")
            yield stream.decompress(given, BLOCK)

    return blocks


COMPRESSIONS: dict[str, tuple[bytes, Callable[[BinaryIO], Iterator[bytes]]]] = {
    ".xz": (b"\xfd7zXZ\0", _decoded(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=LZMA_MEMORY))),
    ".gz": (b"\x1f\x8b", _gunzipped),
    ".bz2": (b"BZh", _decoded(bz2.BZ2Decompressor)),
}
"""Ending of the file's name, first bytes of its content, decompressor."""


class Lines:
    """The lines of one file without their ends; knows where it is, for errors, and the text's sha256 in the end."""

    def __init__(self, path: Path, limits: Limits, shown: str | None = None):
        self.path, self.limits = path, limits
        self.name = shown or str(path)
        self.number = 0
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def place(self, number: int | None = None) -> str:
        return f"{self.name}, line {self.number if number is None else number}"

    def error(self, text: str) -> DataError:
        """An error at the present line."""
        return DataError(f"{self.place()}: {text}")

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        for block in self._blocks():
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield self._next(line)
            if len(rest) > self.limits.line:
                self._next(rest)
        if rest:
            yield self._next(rest)

    def _next(self, line: bytes) -> bytes:
        self.number += 1
        if len(line) > self.limits.line:
            raise self.error(f"the line is longer than the limit of {self.limits.line} bytes")
        if b"\0" in line:
            raise self.error("the line has a NUL byte, so this is no text file")
        return line

    def _blocks(self) -> Iterator[bytes]:
        size = 0
        try:
            with self.path.open("rb") as file:
                for block in self._decompressed(file):
                    size += len(block)
                    if size > self.limits.text:
                        raise DataError(f"{self._after()}: the text is longer than {self.limits.text} bytes, the limit")
                    self._digest.update(block)
                    yield block
        except DAMAGE as error:
            raise DataError(f"{self._after()}: the file cannot be read to its end: {error}") from error

    def _after(self) -> str:
        return f"{self.name}, after line {self.number}"

    def _decompressed(self, file: BinaryIO) -> Iterator[bytes]:
        start = file.read(8)
        file.seek(0)
        for ending, (magic, decompressed) in COMPRESSIONS.items():
            if start.startswith(magic):
                return decompressed(file)
            if self.path.suffix == ending:
                raise OSError(f"its name ends in {ending}, its content does not begin as such a file does")
        return _plain(file)
