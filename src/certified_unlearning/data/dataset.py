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
    """A data set, declared in the module of its ``make``.

    Attributes:
        name: What ``dataset`` in `params.yaml` calls it.
        title: What figures call it.
        make: Prepares it: from the directory of raw files and the seed of the split, and from a choice of features
            where there is one.
        classes: How many there are.
        raw_files: As they were published; empty where the records come with a package.
        features: Those of images that there are, the usual one first; empty where there is no choice.
        package: The package that brings the records, where there are no raw files.
        content_sha256: Of those records.
        learned_from: What the preprocessing takes from the records, which a guarantee has to take for public; empty
            where each record is prepared by itself.
        preset: The preset that makes results on it; empty where that has its name.
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
        """Prepare it from its raw files.

        Args:
            raw_root: The directory that `fetch.fetch` filled.
            seed: Of the split into training and test part, where the source has none.
            features: For data sets of images that offer a choice; None for the only or usual ones.

        Raises:
            ParameterError: It has no such features, or an extra is not installed.
            DataError: A raw file is missing or damaged, or a record cannot be used.
        """
        if features is not None and features not in self.features:
            known = f"has {' and '.join(self.features)}" if self.features else "offers no choice"
            raise ParameterError(f"there are no features {features!r} of {self.name}, which {known}")
        return self.make(raw_root, seed, **({} if features is None else {"features": features}))
