"""MLflow: finished result files become runs, which can be searched and compared.

Nothing else depends on this package, and it never affects a result. If a server does not answer, there is one warning,
and `sync` later sends what is missing. Each preset is one MLflow experiment. It has a parent run for each experiment of
a paper, and below this a run for each sweep point. A run is found again by its content key.
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
