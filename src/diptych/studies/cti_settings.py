"""How the studies of thesis chapter 7 are trained and measured: as published, on any catalogue, on generated ones."""

from __future__ import annotations

from diptych.studies.study import Setting, SettingName

SETTINGS: dict[SettingName, Setting] = {
    "paper": Setting(
        description="CLIP's ViT-B/32 and all-mpnet-base-v2 by their names on Hugging Face, trained as section 7.4.2 "
        "says (τ = 1, λ = 0.5, 30 epochs, batches of 8 and 128); on XMarket, whose 38,921 products of the chapter were "
        "not published",
        recipes={},
        measure={
            "features.image": "hf:openai/clip-vit-base-patch32",
            "features.text": "sentence:sentence-transformers/all-mpnet-base-v2",
        },
        time="not measured: both encoders on 40,000 products are for a GPU, training is not",
    ),
    "data": Setting(
        description="any catalogue, our defaults of training; colours, edges and latent semantics where no encoder is "
        "given",
        recipes={},
        seeds=(0, 1, 2),
        time="a minute on a slow processor per training of 5,000 products, and 63 trainings with three seeds, once "
        "pictures are encoded",
    ),
    "quick": Setting(
        description="generated products, colours and edges of small pictures, latent semantics, ten epochs; a fifth of "
        "the most specific categories is only tested",
        recipes={},
        measure={
            "train.epochs": 10,
            "train.hidden": 96,
            "train.width": 64,
            "features.text": "lsa:64",
            "measure.split": "category",
        },
        products={"n_products": 1200, "levels": (2, 5), "size": 32, "seed": 7},
        time="a minute on a processor for all four together",
    ),
}

MAP_NOTE = (
    "Printed mAP@k is held against mAP over the hits among the first k (mAP-hits@k); the number below it is divided by "
    "min(k, relevant products)."
)
"""Of tables with mAP@k."""

NOTES = (
    "Encoders are given with --set features.image=… and --set features.text=…; the row of CLIP needs one that reads "
    "pictures and texts. All four studies share one evaluation, in the folder cti.catalogues beside theirs.",
    "The test products get one category each, drawn once (all categories) or as the setting says; a category asks when "
    "it has a test product.",
)
"""Of all."""
