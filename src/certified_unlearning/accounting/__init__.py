"""What is guaranteed, as pure functions of numbers: no data, no tensors, quick to import.

=====================  ====================================================================================
`problem`              `Problem`: the constants n, m, L, M, eta, and the adjacency; sensitivity
`curves`               `Schedule`, and the privacy curves: `RenyiCurve`, `GaussianCurve`
`lsi`, `hoelder`       Langevin unlearning's accountant, as published and with optimised exponents
`lsi_general`          its convex and non-convex cases; `lsi_extras`: insufficient training, saved steps
`shifted`, `cyclic`    shifted interpolation, exact on quadratics; cyclic mini-batches; both by `pooling`
`dynamics`             *Differential Privacy Dynamics*, `gaussians`: exact values; `private_erm`: its recipe
`accountants`          the interchangeable ones by name: `unlearning_curve`, `unlearning_epsilon`
`conversion`           from curves to (epsilon, delta) and back
`planning`             `least_steps`, `least_steps_after` a history, `least_stream_steps`, `least_sigma`, `most_records`
`deletion*`            *Forget Unlearning*: plans, bounds, adaptive requests, risk, attacks, exact values
`descent_to_delete`    the baseline as published; `descent_shifted`: its tighter form; `descent_conditional`: against
                       retraining noised once where the state is published
`rounding`             what computed steps and drawn noise are off by; `arithmetic`: what that costs a guarantee
`stationarity`         finite learning: `learned_steps`, `residual_mu`, `extra_delta`
`search`, `checks`     searches and input checks that these share
=====================  ====================================================================================
"""

from certified_unlearning.accounting.accountants import (
    ACCOUNTANTS,
    AccountantName,
    CertifiedRequest,
    initial_epsilon,
    largest_guarantee,
    stream_guarantees,
    unlearning_curve,
    unlearning_epsilon,
)
from certified_unlearning.accounting.conversion import (
    EpsilonAtOrder,
    delta_from_mu,
    delta_from_renyi,
    epsilon_from_mu,
    epsilon_from_renyi,
    epsilon_of,
    mu_from_epsilon,
)
from certified_unlearning.accounting.curves import GaussianCurve, PrivacyCurve, RenyiCurve, Schedule
from certified_unlearning.accounting.descent_to_delete import (
    PublishedStatePlan,
    descent_problem,
    descent_step_size,
    least_learning_steps,
    published_state_epsilon,
    published_state_plan,
    secret_state_epsilon,
    secret_state_sigma,
)
from certified_unlearning.accounting.planning import (
    PlannedRequest,
    least_sigma,
    least_steps,
    least_steps_after,
    least_stream_steps,
    most_records,
)
from certified_unlearning.accounting.problem import Adjacency, Problem
from certified_unlearning.accounting.stationarity import (
    extra_delta,
    learned_steps,
    residual_mu,
    starting_distance,
)

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
