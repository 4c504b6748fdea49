"""A raw file of a data set: where it is published, and how to tell that a file is the published one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RawFile:
    """A file as it was published.

    Attributes:
        path: Its place below the raw root, and below the directory that UNLEARNING_DATA names.
        sha256: Of its content; of the decompressed bytes when it is one compressed file (``.gz``, no archive).
        md5: Of the published file as it is: its name in the DVC cache.
        addresses: Where it is published, in the order to try.
        gzip_header: The published file's gzip header, for copies that lost it (see `as_published`).
        lossy_copy: A less exact file with the same records, taken where a person has it and not this one: before
            anything is downloaded. What is prepared from it says so.
    """

    path: str
    sha256: str
    md5: str
    addresses: tuple[str, ...]
    gzip_header: bytes | None = None
    lossy_copy: "RawFile | None" = None

    @property
    def compressed(self) -> bool:
        """Whether the content is what decompressing the file gives."""
        return self.path.endswith(".gz") and not self.path.endswith(".tar.gz")
