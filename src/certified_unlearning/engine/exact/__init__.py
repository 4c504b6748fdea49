"""What exact unlearning is made of: fresh draws, couplings, gradients of single records, sums over prefixes."""
