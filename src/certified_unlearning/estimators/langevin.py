"""Logistic and softmax regression by Langevin unlearning."""

import torch

from certified_unlearning.estimators.base import UnlearningClassifier, shown_progress
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner


class LangevinLogisticRegression(UnlearningClassifier):
    """Logistic regression, binary or multinomial, that can unlearn records with an (epsilon, delta) certificate.

    It learns by noisy gradient descent and unlearns by going on with it on the records that are left (Chien, Wang,
    Chen, Li, Langevin unlearning, NeurIPS 2024). The noise is planned before anything is learned; each `unlearn` plans
    its own number of steps, for any number of records.

    The objective is scikit-learn's with the same ``C`` (see `UnlearningClassifier` on the intercept). Its strong
    convexity is about ``1 / (C n)``: with a large ``C`` learning takes many steps and unlearning much noise. ``C n``
    of 30 to 100 is a good first choice.

    Args:
        epsilon: The target after every `unlearn`.
        delta: Of the target: a number strictly between 0 and 1, or ``"1/n"``.
        sigma: Noise scale: a step adds noise of standard deviation ``sqrt(2 step_size) sigma``. None: the least with
            which ``steps`` steps unlearn ``records`` records.
        steps: Steps that unlearning ``records`` records at once shall take. Not together with ``sigma``. With neither,
            as many as it takes for what was learned to fade by a factor ``e``.
        C: Inverse strength of the regulariser, as in scikit-learn.
        records: How many records ``steps`` steps shall be able to unlearn at once. Any number can be unlearned
            later, by more steps or fewer.
        accountant: ``shifted`` (exact on quadratics), ``lsi`` (the paper's) or ``lsi-tight``.
        adjacency: What retraining is compared with: on data where a removed record's loss is 0 (``zero-out``:
            scikit-learn's objective with the same ``C`` on the remaining records), where another record stands in its
            place (``replace``), or on the mean over the remaining records (``remove``).
        normalize: Whether every row is divided by its own norm. Otherwise a row longer than 1 is an error.
        fit_intercept: Whether there is an intercept, which is regularised.
        random_state: None: noise from the operating system's entropy, which is not kept. A number makes results
            repeatable, but whoever knows it can subtract the noise.
        device: ``auto``, ``cpu`` or ``cuda``.
        dtype: ``float32``, or ``float64`` where rounding would take more than a tenth of epsilon; or ``float64``.
    """

    _LEARNER = LangevinLearner

    def _learn(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        progress = shown_progress("fit", self._learner.learning_steps)
        self._weights = self._learner.learn(rows, labels, [self._noise_key()], progress=progress).cpu().numpy()

    def _unlearn(self, rows: torch.Tensor, labels: torch.Tensor, records: int) -> None:
        removal = self._learner.plan_removal(self.removals_, records)
        history = [*self.removals_, removal]
        weights = self._learner.unlearn(
            torch.as_tensor(self._weights, device=rows.device),
            rows,
            labels,
            history,
            [self._noise_key()],
            progress=shown_progress("unlearn", removal.steps),
        )
        self._weights, self.removals_ = weights.cpu().numpy(), history
