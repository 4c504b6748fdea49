"""Privacy accounting: pure functions of numbers that need no data and no tensors.

Each analysis has a folder:

- `core` contains what all analyses share: constants (`problem`, `losses`), curves and their conversion (`curves`,
  `conversion`), and bounds on rounding errors (`rounding`).
- `langevin` analyses Langevin unlearning. Its modules are the published bound (`lsi`), the bound with optimised
  exponents (`hoelder`), plans of steps, noise or records (`planning`), the cost of finite learning (`stationarity`),
  and the accountants by name (`accountants`).
- `shifted` contains shifted interpolation (`interpolation`), which is exact on quadratics. Its module `arithmetic`
  computes the cost of rounding.
- `cyclic` contains shifted interpolation for mini-batches: streams of requests (`stream`), plans (`planning`) and
  accountants (`accountants`).
- `descent` contains three analyses of Descent-to-Delete: the published one (`published`), a tighter one (`shifted`),
  and one for a published state (`conditional`), whose comparator is retraining that is noised once.
- `residual` analyses noise on weights whose gradient is certified to be small. Its modules include the guarantee of a
  release (`release`), Newton removal (`newton`), rounding errors (`rounding`), and the schedule that decides when data
  are read (`schedule`).
- `deletion` contains the theorems of *Forget Unlearning*: plans (`planning`), the conditions of the theorems
  (`conditions`), rates of Rényi bounds (`rates`), risk (`utility`), and the advantage of attacks (`soundness`).
- `tv` analyses exact unlearning by total variation: how often an edit causes a recomputation (`subsampling`,
  `recomputation`, `tree`), published parameters (`erm`, `one_pass`), and plans (`planning`).
- `private` analyses differential privacy of linear models. Its module `guarantee` covers one record and several
  records. The other modules describe releases, selections, losses and the learning methods.

The following modules are not in a folder:

- `accountant` defines what an accountant declares, and `accountants` lists all accountants.
- `assumptions` describes the assumptions of the accountants in words.
- `guarantees` computes the numbers of a certificate.
- `streams` stores the requests to one model and the guarantee so far, which each request updates.

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
