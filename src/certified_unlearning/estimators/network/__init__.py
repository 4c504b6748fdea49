"""A network whose predictions come with certificates that removals would not change them."""
