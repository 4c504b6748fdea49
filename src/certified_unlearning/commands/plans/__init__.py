"""What the commands `unlearn plan ...` make of the flags that they are given."""
