"""The experiment's settings in `params.yaml`, with fewer releases; and how many interactions the tests afford."""

from pathlib import Path

from certified_unlearning import parameters
from certified_unlearning.deletion.attacked import plan_of

INTERACTIONS = 2500
PARAMETERS = parameters.load(Path(__file__).parents[2] / "params.yaml")
_WHOLE = PARAMETERS.deletion
SETTINGS = _WHOLE.model_copy(
    update={
        "counting": _WHOLE.counting.model_copy(update={"releases": 300}),
        "stream": _WHOLE.stream.model_copy(update={"releases": 500}),
        "risk": _WHOLE.risk.model_copy(update={"trials": 30, "requests": 2}),
    }
)
PLAN = plan_of(SETTINGS.problem)
