"""The computations behind the commands `unlearn plan ...`, from flags to printed tables."""
