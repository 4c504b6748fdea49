"""Differential privacy: noise, its composition, selections, and what private learners of linear models guarantee.

`plan.PrivatePlan` is the base of plans. To add one, write its module next to the others and list it in `PLANS`.
"""

from certified_unlearning.accounting.private.learners import LEARNERS
from certified_unlearning.accounting.private.phased import PhasedDescent
from certified_unlearning.accounting.private.plan import PlanConstants, PrivatePlan
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.searches import SELECTIONS, learner_of
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider

_OTHERS: tuple[type[PrivatePlan], ...] = (
    SpiderBoost,
    TreeSpider,
    RecursiveRegularisation,
    PhasedDescent,
    SampledDescent,
    SampledSpider,
)
PLANS: dict[str, type[PrivatePlan]] = {**LEARNERS, **{kind.name: kind for kind in _OTHERS}}
"""All plans, by name."""


def plan_of(constants: PlanConstants) -> PrivatePlan:
    """Return the plan with these constants. Values that do not affect privacy may differ from the original ones.

    Raises:
        ParameterError: There is no such plan.
        AssumptionError: A condition of the plan's privacy does not hold.
    """
    if constants.selection in SELECTIONS:
        return learner_of(constants)
    return PLANS[constants.mechanism].from_constants(constants)
