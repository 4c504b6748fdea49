"""Privacy accounting: pure functions of numbers that need no data and no tensors. Each analysis has a folder.

===============  ==========================================================================================
`core`           what all analyses share: constants (`problem`, `losses`), `curves` and their `conversion`, `rounding`
`langevin`       Langevin unlearning: `lsi` (as published), `hoelder` (with optimised exponents), `planning` (of steps,
                 noise or records), `stationarity` (the cost of finite learning), `accountants` (by name)
`shifted`        shifted interpolation, exact on quadratics: `interpolation`, and `arithmetic` (the cost of rounding)
`cyclic`         shifted interpolation for mini-batches: `stream` of requests, `planning`, `accountants`
`descent`        Descent-to-Delete: `published`, `shifted` (a tighter bound), `conditional` (the state is published,
                 and the comparator is retraining that is noised once)
`residual`       noise on weights whose gradient is certified to be small: `release`, `newton`, their `rounding`, and
                 the `schedule` by which data are read
`deletion`       *Forget Unlearning*: `planning`, its `conditions`, the `rates` of Rényi bounds, risk (`utility`),
                 attack advantage (`soundness`)
`tv`             exact unlearning by total variation: how often an edit causes a recomputation (`subsampling`,
                 `recomputation`, `tree`), published parameters (`erm`, `one_pass`), `planning`
`private`        differential privacy of linear models: `releases`, `selections`, `losses`, `learners`, `searches`,
                 `spider`, `tree_spider`, `recursive`, `phased`, `sampled` batches; and the `guarantee` for one
                 record and for several
`accountant`     what an accountant declares; `accountants`: all accountants; `assumptions`: what they assume, in words;
                 `guarantees`: the numbers of a certificate
`streams`        the requests to one model, and the guarantee so far, which each request updates
===============  ==========================================================================================

Formulas that are needed only for a paper's claims and figures are in `papers`, in the ``theory`` of that paper.
"""

from certified_unlearning.accounting.core.conversion import (
    EpsilonAtOrder,
    delta_from_mu,
    delta_from_renyi,
    epsilon_from_mu,
    epsilon_from_renyi,
    epsilon_of,
    mu_from_epsilon,
)
from certified_unlearning.accounting.core.curves import GaussianCurve, PrivacyCurve, RenyiCurve, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.descent.published import (
    PublishedStatePlan,
    descent_problem,
    descent_step_size,
    least_learning_steps,
    published_state_epsilon,
    published_state_plan,
    secret_state_epsilon,
    secret_state_sigma,
)
from certified_unlearning.accounting.langevin.accountants import (
    ACCOUNTANTS,
    AccountantName,
    CertifiedRequest,
    initial_epsilon,
    largest_guarantee,
    stream_guarantees,
    unlearning_curve,
    unlearning_epsilon,
)
from certified_unlearning.accounting.langevin.planning import (
    PlannedRequest,
    least_sigma,
    least_steps,
    least_steps_after,
    least_stream_steps,
    most_records,
)
from certified_unlearning.accounting.langevin.stationarity import (
    extra_delta,
    learned_steps,
    residual_mu,
    starting_distance,
)
from certified_unlearning.vocabulary import Adjacency

__all__ = [
    "ACCOUNTANTS",
    "AccountantName",
    "Adjacency",
    "CertifiedRequest",
    "EpsilonAtOrder",
    "GaussianCurve",
    "PlannedRequest",
    "PrivacyCurve",
    "Problem",
    "PublishedStatePlan",
    "RenyiCurve",
    "Schedule",
    "delta_from_mu",
    "delta_from_renyi",
    "descent_problem",
    "descent_step_size",
    "epsilon_from_mu",
    "epsilon_from_renyi",
    "epsilon_of",
    "extra_delta",
    "initial_epsilon",
    "largest_guarantee",
    "learned_steps",
    "least_learning_steps",
    "least_sigma",
    "least_steps",
    "least_steps_after",
    "least_stream_steps",
    "most_records",
    "mu_from_epsilon",
    "published_state_epsilon",
    "published_state_plan",
    "residual_mu",
    "secret_state_epsilon",
    "secret_state_sigma",
    "starting_distance",
    "stream_guarantees",
    "unlearning_curve",
    "unlearning_epsilon",
]
