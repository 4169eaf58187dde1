"""Karpathy's JSON: MS COCO, Flickr30k, Flickr8k and everything written in their manner.

``{"images": [{"filename", "split", "sentences": [{"raw", "sentid"}, …], …}, …]}``, optionally
gzipped. COCO's ``filepath`` (train2014, val2014) is honoured, and its ``restval`` images join the
training split (113,287 images) unless ``restval=false``.

Source of the splits: Karpathy and Fei-Fei, Deep Visual-Semantic Alignments, CVPR 2015.
"""

from pathlib import Path

from diptych.core.errors import DataError, UsageError
from diptych.core.reading import read_json
from diptych.data.collection import Centric, Collection
from diptych.data.images import FolderSource
from diptych.data.readers.contract import Gathering, image_folder, one_file, reader
from diptych.data.regions import RegionSource, open_regions, region_rows

KARPATHY = ("dataset*.json", "dataset*.json.gz")
_OWN_KEYS = {"filename", "filepath", "split", "sentences", "sentids"}
_OWN_SENTENCE_KEYS = {"raw", "sentid", "imgid", "tokens"}


@reader(
    "karpathy",
    "Karpathy's JSON (COCO, Flickr30k, Flickr8k): a dataset*.json and a folder of images",
    *KARPATHY,
    files=("*.json", "*.json.gz"),
    general=1,
)
def read_karpathy(
    path: Path | str,
    images: Path | str | None = None,
    restval: bool = True,
    max_captions: int | None = None,
    skip_bad_captions: bool = False,
    regions: Path | str | None = None,
    region_ids: Path | str | None = None,
    centric: Centric | None = None,
) -> Collection:
    file = one_file(Path(path), *KARPATHY, leave_out=("dataset_info.json", "dataset_dict.json"))
    document = read_json(file, DataError)
    if not isinstance(document, dict) or not isinstance(document.get("images"), list):
        raise DataError(
            f"{file} is not Karpathy's JSON: no list under 'images'",
            "expected {'images': [{'filename', 'split', 'sentences': [{'raw'}]}]}",
        )
    gathered = Gathering(skip_bad_captions)
    for row, image in enumerate(document["images"]):
        try:
            name, split, sentences = str(image["filename"]), str(image["split"]), image["sentences"]
            kept = sentences[:max_captions]
            texts = [str(sentence["raw"]) for sentence in kept]
            ids = [str(sentence.get("sentid", f"{row}#{i}")) for i, sentence in enumerate(kept)]
            records = [{k: v for k, v in one.items() if k not in _OWN_SENTENCE_KEYS} for one in kept]
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{file}: image {row} is not as Karpathy's JSON says ({type(error).__name__}: {error})",
                "each image needs 'filename', 'split' and 'sentences' with 'raw'",
            ) from None
        gathered.add(
            f"{image['filepath']}/{name}" if image.get("filepath") else name,
            texts,
            "train" if split == "restval" and restval else split,
            {key: value for key, value in image.items() if key not in _OWN_KEYS},
            file.name,
            ids,
            records,
        )
    folder = image_folder(images, file.parent)
    dataset = str(document.get("dataset", file.name.split(".")[0]))
    if regions is None and region_ids is not None:
        raise UsageError(
            f"region_ids {region_ids} without regions", "give the features with regions=FILE.npy"
        )
    if regions is None:
        return gathered.collection(dataset, folder, centric)
    features, names = open_regions(regions), list(gathered.items)
    rows = region_rows(names, features, region_ids, str(regions))
    source = RegionSource([features], Path(regions).name, FolderSource(folder, names), rows)
    return gathered.collection(dataset, source, centric)
