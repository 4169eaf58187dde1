from __future__ import annotations

from itertools import combinations
from typing import Literal

import pytest
import torch

from diptych.commerce.category_to_image.features.rows import MODALITIES, Modality
from diptych.commerce.category_to_image.model import Bags, CategoryProductModel
from diptych.core.errors import MismatchError

WIDTHS: dict[Modality, int] = {"image": 5, "title": 3, "attributes": 3}
SUBSETS = [some for size in (1, 2, 3) for some in combinations(MODALITIES, size)]


def random_model(
    modalities: tuple[Modality, ...], attributes: Literal["mean", "attention"]
) -> CategoryProductModel:
    model = CategoryProductModel(
        {one: WIDTHS[one] for one in modalities}, 4, hidden=6, width=2, attributes=attributes
    ).double()
    chance = torch.Generator().manual_seed(3)
    for value in model.parameters():
        value.data = torch.randn(value.shape, generator=chance, dtype=torch.float64)
    return model


def random_rows(n: int = 6) -> dict[Modality, torch.Tensor | Bags]:
    chance = torch.Generator().manual_seed(4)

    def rows(m: int, width: int) -> torch.Tensor:
        return torch.randn(m, width, generator=chance, dtype=torch.float64)

    return {
        "image": rows(n, 5),
        "title": rows(n, 3),
        "attributes": Bags(rows(4, 3), torch.tensor([0, 1, 1, 3, 3, 4, 4])),
    }


@pytest.mark.parametrize("modalities", SUBSETS, ids="-".join)
def test_any_subset_gives_unit_rows(modalities: tuple[Modality, ...]) -> None:
    model = random_model(modalities, "mean")
    p, c = model(random_rows(), torch.ones(2, 4, dtype=torch.float64))
    torch.testing.assert_close(p.norm(dim=1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(c.norm(dim=1), torch.ones(2, dtype=torch.float64))
    assert model.product_head.first.in_features == sum(WIDTHS[one] for one in modalities)


def test_rows_are_joined_as_image_title_attributes() -> None:
    model = random_model(MODALITIES, "mean")
    rows = random_rows()
    joined = model.joined(rows, {"image": torch.tensor([True, False, True, True, True, True])})
    torch.testing.assert_close(joined[0, :8], torch.cat([rows["image"][0], rows["title"][0]]))
    torch.testing.assert_close(joined[1, :5], model.missing["image"])  # no picture
    torch.testing.assert_close(joined[1, 8:], model.missing["attributes"])  # no attributes
    torch.testing.assert_close(joined[2, 8:], rows["attributes"].rows[1:3].mean(dim=0))


@pytest.mark.parametrize("attributes", ["mean", "attention"])
def test_the_gradients_of_products_are_those_of_the_joined_rows(
    attributes: Literal["mean", "attention"],
) -> None:
    """The learned rows have their gradient by another way than the formula is written."""
    model, rows = random_model(MODALITIES, attributes), random_rows()
    present = {"image": torch.tensor([True, False, True, False, False, True])}
    weights = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(6, 2)
    (model.products(rows, present) * weights).sum().backward()
    found = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    plain = torch.nn.functional.normalize(model.product_head(model.joined(rows, present)), dim=1)
    torch.testing.assert_close(plain, model.products(rows, present))
    (plain * weights).sum().backward()
    for name, value in model.named_parameters():
        if value.grad is not None:
            torch.testing.assert_close(found[name], value.grad)
    assert found["missing.image"].abs().max() > 0
    assert found["missing.attributes"].abs().max() > 0


def test_what_lies_in_the_place_of_a_missing_row_does_not_count() -> None:
    model, rows = random_model(MODALITIES, "mean"), random_rows()
    present = {one: torch.zeros(6, dtype=torch.bool) for one in MODALITIES}
    with torch.no_grad():
        nothing = model.products(rows, present)
        spoiled = {**rows, "image": torch.full((6, 5), torch.nan, dtype=torch.float64)}
        torch.testing.assert_close(model.products(spoiled, present), nothing)
    assert torch.isfinite(nothing).all()  # a product with nothing at all has a row
    torch.testing.assert_close(nothing, nothing[:1].expand(6, 2))


def test_before_training_a_missing_row_is_zeros() -> None:
    model = CategoryProductModel(WIDTHS, 4)
    assert all(not value.any() for value in model.missing.values())


def test_rows_that_do_not_fit_are_refused() -> None:
    model = random_model(("image", "title"), "mean")
    with pytest.raises(MismatchError, match="no title rows"):
        model.products({"image": torch.ones(1, 5)})
    with pytest.raises(MismatchError, match="image rows are 4 wide, the model takes 5"):
        model.products({"image": torch.ones(1, 4), "title": torch.ones(1, 3)})
