"""What the HTTP API takes and gives; its OpenAPI document is made of these models."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

MOST_PARTS = 16

Name = Annotated[str, Field(min_length=1, max_length=1024)]
Text = Annotated[str, Field(max_length=10_000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Base64 = Annotated[
    str, Field(description="The file's bytes in base64, or a data: URL. Other addresses are not fetched.")
]
Vector = Annotated[
    list[Finite] | dict[str, Finite],
    Field(description="As many numbers as the index's vectors have; of a sparse index weights by term."),
]
Where = Annotated[
    dict[str, JsonValue],
    Field(
        description="Conditions on metadata, all of which must hold: a value, a list (any of), or a range by "
        "gt, gte, lt, lte.",
        examples=[{"split": "test", "price": {"lt": 20}}],
    ),
]


class Model(BaseModel):
    """A body: unknown keys are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


KINDS = ("text", "image", "vector", "item")


class _Query(Model):
    text: Text | None = Field(None, examples=["a green cross"])
    image: Base64 | None = None
    vector: Vector | None = None
    item: Name | None = Field(None, description="The id of an item: more like this.")

    def kinds(self) -> list[str]:
        """Return which of them are given."""
        return [name for name in KINDS if getattr(self, name) is not None]

    @model_validator(mode="after")
    def _not_blank(self) -> Self:
        if self.text is not None and not self.text.strip():
            raise ValueError("the text is empty")
        return self


class QueryPart(_Query):
    """A part of a query: one of text, image, vector and item."""

    weight: Finite = Field(1.0, ge=-100, le=100, description="Of several parts; below 0: away from it.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.kinds()) != 1:
            raise ValueError(f"give exactly one of {', '.join(KINDS)}")
        return self


class QueryRequest(_Query):
    """What is searched for: one of text, image, vector and item, or several as parts."""

    parts: list[QueryPart] = Field([], max_length=MOST_PARTS, description="A weighted mixture.")
    negative: list[Text] = Field(
        [], max_length=MOST_PARTS, description="Texts to keep away from, at weight -0.5."
    )
    where: Where | None = None
    options: dict[str, JsonValue] = Field({}, description="Of the engine for this search, e.g. ef_search.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.kinds() and not self.parts:
            raise ValueError(f"the query is empty: give one of {', '.join(KINDS)}, or parts")
        if len(self.all_parts()) > MOST_PARTS:
            raise ValueError(f"a query has at most {MOST_PARTS} parts")
        return self

    def all_parts(self) -> list[QueryPart]:
        """Return all parts; negative texts have weight -0.5."""
        own = [QueryPart(**{name: getattr(self, name)}) for name in self.kinds()]
        return [*own, *self.parts, *(QueryPart(text=text, weight=-0.5) for text in self.negative)]


class SearchRequest(QueryRequest):
    """A search in one index, or in several whose rankings are fused by reciprocal rank."""

    index: Name | list[Name] | None = Field(None, description="Of GET /v1/indexes; the first by default.")
    k: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=10_000, description="Hits that are left out at the beginning.")
    threshold: Finite | None = Field(None, description="Hits that score less are left out; of one index.")
    exact: bool = Field(False, description="Miss nothing, at whatever cost.")

    @model_validator(mode="after")
    def _one_scale(self) -> Self:
        if isinstance(self.index, list) and not 1 <= len(self.index) <= MOST_PARTS:
            raise ValueError(f"name 1 to {MOST_PARTS} indexes")
        if isinstance(self.index, list) and len(self.index) > 1 and self.threshold is not None:
            raise ValueError("sums of reciprocal ranks have no threshold: search one index")
        return self


class Hit(Model):
    """An item that was found."""

    id: str
    score: float
    captions: list[str]
    metadata: dict[str, JsonValue]
    image: str | None = Field(description="Where its image is: GET it, with ?width=.")
    path: str | None = Field(description="Of the image's file on the server.")


class SearchResponse(Model):
    """The hits of a search, best first."""

    indexes: list[str]
    hits: list[Hit]
    more: bool = Field(description="Whether there are more behind these.")
    note: str = ""


class ExplainRequest(QueryRequest):
    """A query and the item that it is matched with, of a sparse index."""

    index: Name | None = None
    match: Name = Field(description="The id of the item whose score is explained.")
    shown: int = Field(20, ge=1, le=1000)


class Term(Model):
    """A term, or one word of several, that query and item have in common."""

    term: str
    query: float
    item: float
    contribution: float


class ExplainResponse(Model):
    """The terms of a match, most first; with ``rest`` they add up to the score."""

    score: float
    terms: list[Term]
    more: int = Field(description="Terms that are not shown.")
    rest: float = Field(description="What they add.")


class EmbeddingsRequest(Model):
    """OpenAI's shape; an input that is a data: URL of an image is encoded as one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")  # clients of OpenAI send more

    input: str | list[str] = Field(min_length=1)
    model: str | None = Field(None, description="An index of GET /v1/indexes: its encoder.")
    encoding_format: Literal["float", "base64"] = "float"


class Embedding(Model):
    """One row."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(Model):
    """OpenAI's counters; characters are counted, not tokens."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsResponse(Model):
    """OpenAI's shape."""

    object: Literal["list"] = "list"
    model: str
    data: list[Embedding]
    usage: Usage


class NewItem(Model):
    """An image that is added to an index."""

    image: Base64
    id: Name | None = Field(None, description="By default made of the image's content.")
    captions: list[Text] = Field([], max_length=100)
    metadata: dict[str, JsonValue] = {}


class ItemsRequest(Model):
    """Images that are added; they are on disk when the answer comes."""

    index: Name | None = None
    items: list[NewItem] = Field(min_length=1)
    replace: bool = Field(False, description="Items whose id is there take the new image.")


class ItemsResponse(Model):
    """What an index holds after a change."""

    index: str
    ids: list[str]
    items: int = Field(description="In the index now.")


class IndexInfo(Model):
    """An index that is served."""

    name: str
    items: int
    kind: str
    engine: str
    vectors: Literal["dense", "sparse"]
    width: int
    encoder: str
    fingerprint: str = Field(description="Of its content: it changes with every change.")
    writable: bool
    fields: dict[str, list[JsonValue]] = Field(
        description="Metadata fields with few values, and their values."
    )
    description: str


class IndexesResponse(Model):
    """All that is served."""

    indexes: list[IndexInfo]
    scorer: bool = Field(description="Whether purchase intent is scored.")


class Health(Model):
    """``live``: the process answers; ``ready``: encoders and indexes are loaded and warm."""

    live: bool
    ready: bool
    version: str
    uptime_seconds: float


class Problem(BaseModel):
    """A problem (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    fix: str = Field("", description="What to do about it.")
    request: str = Field("", description="The id of the request, as in the log.")


class PickRequest(Model):
    """Images for categories, named by a name or a path."""

    index: Name | None = None
    categories: list[Name] = Field(min_length=1, max_length=256)
    k: int = Field(8, ge=1, le=100)


class FillRequest(Model):
    """Products whose categories are suggested."""

    index: Name | None = None
    items: list[Name] = Field(min_length=1, max_length=256, description="Ids of products of the index.")
    threshold: float = Field(0.5, ge=0, le=1)


class Picks(Model):
    """The best products of each category."""

    picks: dict[str, list[Hit]]


class Filled(Model):
    """Suggested paths, cut where the model is not sure."""

    products: list[dict[str, Any]]


class ScoreRequest(Model):
    """Sessions so far, as ``diptych intent score`` takes them."""

    sessions: list[dict[str, JsonValue]] = Field(min_length=1, max_length=256)
    reasons: int = Field(5, ge=0, le=50)


class Scores(Model):
    """An answer per session: a probability with its reasons, or an error with its fix."""

    scores: list[dict[str, Any]]
