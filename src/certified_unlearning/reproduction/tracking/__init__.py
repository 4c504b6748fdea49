"""MLflow: finished result files become runs that can be searched and compared.

Nothing else needs this package, and it never affects a result. If a server does not answer, there is one warning, and
`sync` later sends what was missed. There is one MLflow experiment per preset, in it one parent run per experiment of a
paper, below it one run per sweep point, found again by its content key.
"""

from certified_unlearning.reproduction.tracking.runs import TrackResult, pages, sync, track_experiment
from certified_unlearning.reproduction.tracking.store import PATIENCE_SECONDS, StoreStatus, prepare_store
from certified_unlearning.reproduction.tracking.view import FigureView

__all__ = [
    "PATIENCE_SECONDS",
    "FigureView",
    "StoreStatus",
    "TrackResult",
    "pages",
    "prepare_store",
    "sync",
    "track_experiment",
]
