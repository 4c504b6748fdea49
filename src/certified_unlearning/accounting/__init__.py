"""What is guaranteed, as pure functions of numbers: no data, no tensors, quick to import.

=====================  ====================================================================================
`problem`              `Problem`: the constants n, m, L, M, eta, and the adjacency; sensitivity
`conversion`           `epsilon_from_renyi`: from a Rényi curve to (epsilon, delta)
`lsi`                  Langevin unlearning's accountant: `initial_epsilon`, `epsilon`, `sequential_epsilon`
                       and the Rényi bounds below them
`planning`             `least_steps`, `least_sigma`, `least_stream_steps` that meet a target
`descent_to_delete`    the baseline: `secret_state_sigma`, `published_state_plan`, their inverses,
                       `least_learning_steps`
`stationarity`         finite learning: `learned_steps`, `residual_mu`, `extra_delta`
`search`, `checks`     searches and input checks that these share
=====================  ====================================================================================
"""

from certified_unlearning.accounting.conversion import EpsilonAtOrder, epsilon_from_renyi
from certified_unlearning.accounting.descent_to_delete import (
    PublishedStatePlan,
    descent_step_size,
    least_learning_steps,
    published_state_epsilon,
    published_state_plan,
    secret_state_epsilon,
    secret_state_sigma,
)
from certified_unlearning.accounting.lsi import (
    epsilon,
    initial_epsilon,
    initial_renyi,
    sequential_epsilon,
    sequential_renyi,
    unlearning_renyi,
)
from certified_unlearning.accounting.planning import (
    PlannedRequest,
    least_sigma,
    least_steps,
    least_stream_steps,
)
from certified_unlearning.accounting.problem import Adjacency, Problem
from certified_unlearning.accounting.stationarity import (
    extra_delta,
    learned_steps,
    residual_mu,
    starting_distance,
)

__all__ = [
    "Adjacency",
    "EpsilonAtOrder",
    "PlannedRequest",
    "Problem",
    "PublishedStatePlan",
    "descent_step_size",
    "epsilon",
    "epsilon_from_renyi",
    "extra_delta",
    "initial_epsilon",
    "initial_renyi",
    "learned_steps",
    "least_learning_steps",
    "least_sigma",
    "least_steps",
    "least_stream_steps",
    "published_state_epsilon",
    "published_state_plan",
    "residual_mu",
    "secret_state_epsilon",
    "secret_state_sigma",
    "sequential_epsilon",
    "sequential_renyi",
    "starting_distance",
    "unlearning_renyi",
]
