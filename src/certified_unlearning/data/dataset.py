"""Declaration of a data set: its name, its raw files, and the function that prepares it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.errors import ParameterError

if TYPE_CHECKING:
    from certified_unlearning.data.prepared import PreparedData


@dataclass(frozen=True)
class DataSet:
    """A data set. It is declared in the module of its ``make``.

    Attributes:
        name: Name of the data set, as in the key ``dataset`` of `params.yaml`.
        title: Name in figures.
        make: A function that prepares the data set. It gets the directory of raw files, the seed of the split, and the
            choice of features if there is one.
        classes: Number of classes.
        raw_files: The published files; empty if the records come with a package.
        features: The choices of image features, the usual one first; empty if there is no choice.
        package: The package that contains the records, if there are no raw files.
        content_sha256: Digest of the records that the package contains.
        learned_from: What the preprocessing learns from the records. A guarantee must assume that this is public.
            Empty if each record is prepared on its own.
        preset: The preset that produces results on this data set; empty if it has the data set's name.
    """

    name: str
    title: str
    make: "Callable[..., PreparedData]"
    classes: int = 2
    raw_files: tuple[RawFile, ...] = ()
    features: tuple[str, ...] = ()
    package: str = ""
    content_sha256: Callable[[], str] | None = None
    learned_from: str = ""
    preset: str = ""

    def prepare(self, raw_root: Path, seed: int, features: str | None = None) -> "PreparedData":
        """Prepare the data set from its raw files.

        Args:
            raw_root: The directory that `fetch.fetch` filled.
            seed: Seed of the split into training and test part, if the source has no split.
            features: The choice of image features; None means the usual choice, or the only features if the data set
                offers no choice.

        Raises:
            ParameterError: The data set has no such features, or an extra is not installed.
            DataError: A raw file is missing or damaged, or a record cannot be used.
        """
        if features is not None and features not in self.features:
            known = f"has {' and '.join(self.features)}" if self.features else "offers no choice"
            raise ParameterError(f"the data set {self.name} has no features {features!r}; it {known}")
        return self.make(raw_root, seed, **({} if features is None else {"features": features}))
