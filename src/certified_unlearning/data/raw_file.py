"""A raw file of a data set: where it is published, and how to verify that a file is the published one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RawFile:
    """A published file, and how to recognise it.

    Attributes:
        path: Path of the file below the raw root. The file has the same path below the directory that UNLEARNING_DATA
            names.
        sha256: Digest of its content. For a single compressed file (``.gz``, not an archive), the content is the
            decompressed bytes.
        md5: Digest of the published file itself; this digest is the file's name in the DVC cache.
        addresses: Addresses of the published file, in the order in which they are tried.
        gzip_header: The published file's gzip header, for copies that lost it (see `as_published`).
        lossy_copy: A less exact file with the same records. If this copy is present and the published file is not, the
            copy is used, and nothing is downloaded. Data that were prepared from the copy are marked.
    """

    path: str
    sha256: str
    md5: str
    addresses: tuple[str, ...]
    gzip_header: bytes | None = None
    lossy_copy: "RawFile | None" = None

    @property
    def compressed(self) -> bool:
        """Whether the content is obtained by decompressing the file."""
        return self.path.endswith(".gz") and not self.path.endswith(".tar.gz")
