"""What claims on exact unlearning are judged with: exact laws, and what the dissertation prints."""
