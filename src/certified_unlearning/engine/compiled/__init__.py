"""What the machine's own compiler builds (`certified_unlearning.compiled`): `minibatch`."""
