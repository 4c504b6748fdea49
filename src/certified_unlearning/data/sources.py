"""The raw files of every data set: where they are published, and how to tell that a file is the published one."""

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


def _mnist(name: str, sha256: str, md5: str, gzip_header: bytes | None = None) -> RawFile:
    mirrors = (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    )
    addresses = tuple(f"{mirror}/{name}" for mirror in mirrors)
    return RawFile(f"mnist/{name}", sha256, md5, addresses, gzip_header)


_CIFAR10 = RawFile(
    # Of the published versions (Python, Matlab, binary) the only one that is plain bytes: the batches of the Python
    # version are pickles, and unpickling can run code.
    "cifar10/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "c32a1d4ab5d03f1284b67883e8d87530",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    lossy_copy=RawFile(
        "cifar10/cifar10-jpeg.zip",
        "cd7a4371e075145697873ef11961d3a787889dbb1058f046d9987108fd0a738b",
        "8f4cdc0a4df8039470218bea174c0511",
        (),
    ),
)


RAW_FILES: dict[str, tuple[RawFile, ...]] = {
    "digits": (),
    "mnist-3-vs-8": (
        _mnist(
            "train-images-idx3-ubyte.gz",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            # RFC 1952: deflate, with name; written 1996-11-18 15:36:26 UTC on Unix.
            b"\x1f\x8b\x08\x08" + (848_331_386).to_bytes(4, "little") + b"\x00\x03train-images.idx3-ubyte\x00",
        ),
        _mnist(
            "train-labels-idx1-ubyte.gz",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "d53e105ee54ea40749a09fcbcd1e9432",
        ),
        _mnist(
            "t10k-images-idx3-ubyte.gz",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "9fb629c4189551a2d022fa330f9573f3",
        ),
        _mnist(
            "t10k-labels-idx1-ubyte.gz",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
    "adult": (
        RawFile(
            "adult/adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "5d7c39d7b8804f071cdd1f2a7c460872",
            ("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",),
        ),
    ),
    "cifar10-cat-vs-ship": (_CIFAR10,),
    "cifar10": (_CIFAR10,),
}
"""The raw files of every data set; scikit-learn brings those of digits."""
