"""Every path of the engine on a GPU that is not there: one device, the numbers of the CPU, no waiting in loops."""

import pytest
import torch

from tests.engine.cuda import descents
from tests.engine.cuda.case import Case, on_the_cpu, outcome

CASES = [*descents.CASES]
every_case = pytest.mark.parametrize("case", CASES, ids=[each.name for each in CASES])


@every_case
def test_a_gpu_computes_what_the_cpu_does(case: Case) -> None:
    torch.testing.assert_close(outcome(case).numbers, on_the_cpu(case))


@every_case
def test_no_round_of_a_loop_waits_for_the_device_but_where_it_is_said(case: Case) -> None:
    assert outcome(case).waits_in_the_loop() <= set(case.waits)
