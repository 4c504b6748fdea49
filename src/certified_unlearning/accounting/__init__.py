"""Privacy accounting as pure functions of numbers: no data, no tensors, quick to import. One folder per analysis.

===============  ==========================================================================================
`core`           what all share: the constants (`problem`, `losses`), `curves` and their `conversion`, `rounding`
`langevin`       Langevin unlearning: `lsi` as published, `hoelder` with optimised exponents; `planning`: steps, noise
                 or records; `stationarity`: finite learning; `accountants`: the interchangeable ones by name
`shifted`        shifted interpolation, exact on quadratics: `interpolation`, and `arithmetic`: what rounding costs
`cyclic`         the same for mini-batches: `stream` of requests, `planning`, `accountants`
`descent`        Descent-to-Delete: `published`, `shifted` (its tighter form), `conditional` (against retraining noised
                 once where the state is published)
`residual`       noise on weights whose gradient is certified to be small: `release`, `newton`, their `rounding`, and
                 the `schedule` of reading data
`deletion`       *Forget Unlearning*: `planning`, its `conditions`, the `rates` of its Rényi bounds, risk (`utility`),
                 attack advantage (`soundness`)
`tv`             exact unlearning by total variation: how often an edit computes again (`subsampling`, `recomputation`,
                 `tree`), published parameters (`erm`, `one_pass`), `planning`
`private`        differential privacy of linear models: `releases`, `selections`, `losses`, `learners`, `searches`,
                 `spider`, `tree_spider`, `recursive`, `phased`, `sampled` batches, and what they guarantee, for one
                 record and for several
`accountant`     what an accountant declares; `accountants`: all of them; `assumptions`: their words; `guarantees`: the
                 numbers of a certificate
`streams`        the requests to one model, and what they came to: from one request to the next
===============  ==========================================================================================

Formulas that only a paper's claims and figures need are in `papers`, in the paper's ``theory``.
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
