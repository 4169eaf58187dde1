"""The model of thesis ch. 7: what stands for a product's attributes, two heads, and both together."""

from diptych.commerce.category_to_image.model.pooling import AttentionPooling, Bags, mean_pooled
from diptych.commerce.category_to_image.model.product import CategoryProductModel, Normalise, ProjectionHead

__all__ = ["AttentionPooling", "Bags", "CategoryProductModel", "Normalise", "ProjectionHead", "mean_pooled"]
