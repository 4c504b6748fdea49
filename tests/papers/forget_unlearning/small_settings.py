"""The experiments' sections of `params.yaml`, with fewer releases, interactions and trials."""

from certified_unlearning.papers.forget_unlearning.services.attacked import plan_of
from certified_unlearning.papers.forget_unlearning.sweeps import Deletion, DeletionRisk
from tests.support.planning import sweep_of

INTERACTIONS = 2500
_WHOLE = sweep_of("mnist", "deletion", interactions=INTERACTIONS)
assert isinstance(_WHOLE, Deletion)
SETTINGS = _WHOLE.model_copy(
    update={
        "counting": _WHOLE.counting.model_copy(update={"releases": 300}),
        "stream": _WHOLE.stream.model_copy(update={"releases": 500}),
    }
)
RISK_SETTINGS = sweep_of("mnist", "risk", trials=30, requests=2)
assert isinstance(RISK_SETTINGS, DeletionRisk)
PLAN = plan_of(SETTINGS.problem)
