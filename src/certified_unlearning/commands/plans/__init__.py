"""What the command `unlearn plan` makes of the flags that it is given."""
