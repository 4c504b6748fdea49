"""Certificates of federated averaging: what they state, and what is refused."""

from typing import Any

import pytest

from certified_unlearning import certificate
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.certificate import CertificateError, FederatedCertificate
from tests.certificate.test_impossible_values import of_clients


def test_it_states_the_bound_of_a_round_over_all_rounds_and_counts_clients() -> None:
    stated = of_clients()
    assert isinstance(stated, FederatedCertificate)
    assert (stated.epsilon, stated.n, stated.right_guesses()) == (0, 37, 0.5)
    assert stated.recompute_probability == pytest.approx(1 - (1 - gaussian_tv(3 / 20)) ** 10, rel=1e-12)
    assert (
        "equal in distribution to a run on the 37 clients that are left (exact by federated-averaging;"
        in stated.summary()
    )
    certificate.verify(stated)


@pytest.mark.parametrize(
    ("forged", "sentence"),
    [
        ({"recompute_probability": 0.1}, "states recompute_probability = 0.1, but its constants give"),
        ({"sigma": 40.0}, "states recompute_probability ="),
        ({"n": 38}, "states n = 38, but it must be n_learned - deleted = 37"),
        ({"requests": 4}, "states requests = 4, but it must be 1 to deleted = 3"),
        ({"requests": 0}, "states requests = 0, but it must be 1 to deleted = 3"),
        ({"loss": "softmax"}, "states loss = 'softmax', but it must be the loss for this number of classes"),
        ({"not_promised": ()}, "states the wrong not_promised"),
        ({"assumptions": ()}, "states the wrong assumptions"),
        ({"lost_releases": 1}, "states the wrong not_promised"),
    ],
)
def test_what_does_not_follow_from_its_constants_is_refused(forged: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CertificateError, match=sentence):
        certificate.verify(of_clients().model_copy(update=forged))
