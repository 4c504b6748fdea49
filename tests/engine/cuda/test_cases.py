"""Every path of the engine on a GPU that is not there: one device, the numbers of the CPU, no waiting in loops.

What is not seen: what CUDA's own kernels make of it, and operations that CUDA lacks. Faults are planted in the tests of
`test_faults.py`.
"""

import pytest
import torch

from tests.engine.cuda import descents, exact, networks
from tests.engine.cuda.case import Case, on_the_cpu, outcome
from tests.engine.cuda.reached import public_functions

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")  # By safetensors.
CASES = [*descents.CASES, *networks.CASES, *exact.CASES]
every_case = pytest.mark.parametrize("case", CASES, ids=[each.name for each in CASES])
NOT_ON_A_GPU = {
    # The machine's own kernels: of tensors of the CPU, which these ask for first.
    "engine.intervals.kernel:centre_and_spread",
    "engine.intervals.kernel:multiplies",
    "engine.intervals.kernel:summed",
    "engine.intervals.kernel:takes",
    "engine.intervals.kernel:turns",
    "engine.minibatch:CyclicObjective.noisy_steps",
    # They hold tensors, or look at shapes, and compute nothing.
    "engine.exact.draws:Draws.at",
    "engine.exact.draws:Draws.fresh",
    "engine.intervals.interval:Interval.point",
    "engine.intervals.network:Network.checked",
    "engine.objectives.rows:StreamedRows.scaled",
    # Several processes with a GPU each need PyTorch's library for these.
    "engine.row_shards:SharedCheckpoint.save",
}


@every_case
def test_a_gpu_computes_what_the_cpu_does(case: Case) -> None:
    torch.testing.assert_close(outcome(case).numbers, on_the_cpu(case))


@every_case
def test_no_round_of_a_loop_waits_for_the_device_but_where_it_is_said(case: Case) -> None:
    assert outcome(case).waits_in_the_loop() <= set(case.waits)


def test_every_place_that_is_said_to_wait_in_a_loop_does() -> None:
    said = {name for case in CASES for name in case.waits}
    assert said == {name for case in CASES for name in outcome(case).waits_in_the_loop()}


def test_every_public_function_that_takes_tensors_or_a_device_is_reached_with_a_gpu_s() -> None:
    reached = {name for case in CASES for name in outcome(case).short.reached}
    reached |= {name.rpartition(".")[0] for name in reached}  # With a method, its class.
    assert set(public_functions()) - reached == NOT_ON_A_GPU
