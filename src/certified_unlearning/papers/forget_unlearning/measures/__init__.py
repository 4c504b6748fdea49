"""What claims on Forget Unlearning measure."""
