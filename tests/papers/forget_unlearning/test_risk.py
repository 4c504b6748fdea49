"""The excess risk along a stream: below the certified one, above it without the steps that it needs."""

from dataclasses import replace

import pytest
import torch

from certified_unlearning.papers.forget_unlearning import risk
from certified_unlearning.papers.forget_unlearning.experiments import RISK_ROWS
from certified_unlearning.reproduction.rows import read_table, write_table
from tests.papers.forget_unlearning.small_settings import RISK_SETTINGS


def test_the_mean_risk_of_every_model_stays_below_the_certified_one(risks, tmp_path):
    assert (risks["risk"] + 6 * risks["standard_error"] < risks["certified"]).all()
    assert (risks["risk"] > 0).all()
    assert risks.groupby("requester")["request"].apply(list).to_dict() == {"adaptive": [0, 1, 2], "fixed": [0, 1, 2]}
    write_table(tmp_path / "risk.parquet", risks, RISK_ROWS)
    read_table(tmp_path / "risk.parquet", RISK_ROWS)


@pytest.mark.parametrize("fault", ["no learning", "a hundred times the noise"])
def test_planted_faults_exceed_the_certified_risk(monkeypatch, fault):
    right = risk.plan_of

    def faulty(settings, *, n, dimension):
        plan = right(settings, n=n, dimension=dimension)
        if fault == "no learning":
            # The start is noise around 0 of this plan's small variance: move it far off instead.
            return replace(plan, learning_steps=0, deletion_steps=0, start_variance=100.0)
        return replace(plan, sigma=100 * plan.sigma)

    monkeypatch.setattr(risk, "plan_of", faulty)
    table = risk.risk_table(RISK_SETTINGS)
    assert (table["risk"] > table["certified"]).all()


def test_the_excess_risk_is_0_at_the_minimiser_and_positive_elsewhere():
    generator = torch.Generator().manual_seed(2)
    features = torch.nn.functional.normalize(torch.randn(40, 3, dtype=torch.float64, generator=generator))
    labels = torch.where(features[:, 0] > 0, 1.0, -1.0).double()
    plan = risk.plan_of(RISK_SETTINGS, n=40, dimension=3)
    points = torch.randn(50, 3, dtype=torch.float64, generator=generator)
    found = risk.excess_risk(points, features, labels, plan)
    assert (found > 0).all()
    # Strong convexity: far away the risk is at least lambda / 2 times the squared distance.
    assert (risk.excess_risk(100 * points, features, labels, plan) > 0.01 * (100 * points).square().sum(dim=1)).all()
