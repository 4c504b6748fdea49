"""The look of all figures: the section `figures` of `params.yaml`.

This module does not need Matplotlib.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

PositiveFloat = Annotated[float, Field(gt=0)]
PositiveInt = Annotated[int, Field(ge=1)]


class FigureStyle(BaseModel):
    """Size and look of all figures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    context: Literal["paper", "notebook", "talk", "poster"] = Field(description="a seaborn context")
    palette: str = Field(description="a seaborn palette, preferably one for colour-blind readers")
    width_inches: PositiveFloat = Field(
        description="width of one column, a number above 0; figures of several panels span two columns"
    )
    height_inches: PositiveFloat = Field(description="height without the legend, a number above 0")
    dots_per_inch: PositiveInt = Field(description="resolution of the PNG, a whole number")
