"""The engine on a GPU that is not there (`tests.support.fake_cuda`): cases, and what is asked of each."""
