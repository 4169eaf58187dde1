"""What cannot be done is one line with its fix and exit code 2 (1 where noted), and nothing is written."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest

<<<<<<< HEAD
CASES = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")
=======
CASES = """
trane => No such command
train --colour => No such option
train => no recipe given
train nonsense => unknown recipe 'nonsense'
train {recipe} --set novalue => is not KEY=VALUE
train {recipe} --out {out} --set objective.name=fancy => 'fancy'
train {recipe} --out {out} --set data.validation=dev => unknown split of scenes 'dev' & known: test, train, val
train {recipe} --out {out} --set batches.sise=7 => unknown key 'batches.sise' & known there: captions_per_image
train {recipe} --out {out} --set model.image.pretrained=true => test_efficientnet could not be & model.image.weights
train {recipe} --out {run} => already holds a run & --resume
train --resume {out} => does not exist
adapt {run} => '--out'
adapt {run} --out {here} => holds other things
adapt {run}/best --data {run} --out {run}/best => is what is adapted
adapt {run} --out {out} --pairs 1000 => 1,000 pairs of
adapt {run} --out {out} --method lora => 'lora' is not one of 'gaussian', 'infonce'
adapt {run} --out {out} --split nowhere => 'nowhere'
adapt {run} --out {out} --strength 0 => strength: Input should be greater
adapt rows:{rows} --data {scenes} --out {out} => no encoder that could be adapted
evaluate {run} --split tset => 'tset' & did you mean 'test'?
evaluate {run} --captions two => captions is 'two'
evaluate {embedded} --captions first => is embedded already
evaluate {embedded} --positives cxc => are not FORMAT:PATH
evaluate {embedded} --positives pairs:a --positives pairs:b => names one format twice
evaluate {embedded} --judgements flickr:x --samples 0 => flickr8k-expert
evaluate hf:nobody/nothing --data {here} --measure DCG_CM => unknown measure 'DCG_CM' & did you mean 'DCG_CM@k'
evaluate hf:nobody/nothing --data {here} --measure DCG_CM@k => for example DCG_CM@10
evaluate hf:nobody/nothing --data {here} --measure DCG_CM@10 --rerank 4 => looks at the first places of the whole
evaluate {embedded} --measure R@1 --relevance {embedded} => none of R@1 asks how relevant an item is
evaluate {embedded} --measure nDCG@10 --relevance {embedded} => none of nDCG@10 asks how relevant an item is
evaluate {run} --rerank 4 --out {out} => has no matching head & albef, blip, xvlm
evaluate {blip} --data {scenes} --out {out} --unranked miss => --unranked miss without --rerank
evaluate {blip} --data {scenes} --out {out} --rerank 4 --unranked ties => 'ties' is not one of
evaluate {blip} --data {scenes} --out {out} --rerank 4 --protocol 'folds(2)' => candidates were chosen from one
evaluate {blip} --data {scenes} --out {out} --rerank 0 => --rerank
evaluate {blip} --data {scenes} --out {out} --rerank many => --rerank
embed {run} --out {out} --accelerator abacus => device 'abacus' cannot be used
embed {run} --processes 0 => --processes
embed {run} --out {here} => holds other things
embed {run} --out {out} --nodes 2 --accelerator cpu => 2 machines, and nothing says which of them this is
embed {run} --out {out} --nodes 2 --accelerator tpu => accelerator 'tpu' on 2 machines
index {run} --engine magic => unknown index engine 'magic'
index {run} --of sounds => 'sounds' is not one of 'images', 'texts'
index {head} --engine hnsw --out {out} => inverted
search {index} '   ' => the query is empty
search {index} 'a star' -k 0 => --help
search {index} 'a star' --own-terms => a dense encoder
search {index} gone.jpg =1> gone.jpg does not exist
search {index} => one source of queries
search {index} x --interactive => one source of queries
search {index} --queries {blank} => holds no query
search {index} --queries none.txt =1> none.txt does not exist
search {index} {itc} =1> width 10
search {index} {itc} --own-terms => no terms of their own
search {index} x --model none => has no terms of its own
search {out} 'a star' =1> out
info nothing:there => nothing
info nothing => unknown path or topic 'nothing'
analyse audit {run} --probe tree => 'tree' is not one of 'linear', 'mlp', 'both'
analyse audit {run} --data {scenes} --scenes => both --data and --scenes
analyse audit {run} {run} => given twice
analyse audit {run}/best --out {here} => no data given
analyse audit {run} --images {here} => --images without --data
analyse audit {run} --reader folder => --reader without --data
analyse audit {run} --reader-option a=1 => --reader-option without --data
analyse audit {run} --scenes --skip-bad-images => --skip-bad-images without --data
analyse audit {out} --scenes => neither a folder nor a name with a known prefix
analyse audit hf:nobody/nothing --scenes => nowhere to write
analyse cocos {run}/best --data {scenes} --out {out} => no objective given & triplet-hardest
analyse cocos {run} --objective fancy => unknown objective 'fancy'
analyse cocos {run} --option colour=3 => has no option 'colour'
analyse cocos {run} --epsilon -1 => '--epsilon': Input should be greater
analyse cocos {run} --unit metre => 'metre' is not one of 'temperature', 'score'
analyse cocos {run} --batch-size 4000 => batch size 4000 is larger
analyse cocos {run} --objective siglip --compat published => is not among those that the paper counts
analyse cocos {run} --split tset => did you mean 'test'?
data shortcuts => one source of images is needed
data shortcuts {scenes} --setup bits => setup 'bits' needs bits, 0 to 13
data shortcuts {scenes} --setup bits --bits 14 => '--bits': Input should be less than or equal to 13 & --help
data shortcuts {scenes} --setup twice => 'twice' is not one of 'none', 'unique' & --help
data shortcuts {scenes} --digits nothing.npz => 'nothing.npz': there is no such file & MNIST
data shortcuts {scenes} --size 100 =1> take 168 × 28 pixels, the image has 100 × 100 & digit_size to at most 16
data shortcuts {scenes} --split trian => unknown split of scenes 'trian' & did you mean 'train'
data shortcuts {scenes} --split test --shuffled --epoch 1 =1> not in split 'train' & batches of that split
data shortcuts {scenes} --out sheet.jpg => 'sheet.jpg' ends in '.jpg' & .png
data shortcuts {scenes} --scenes => one source of images is needed & --scenes
analyse granularity {scenes} --feature wrods => did you mean 'words'
analyse granularity {scenes} --compat publish => 'publish' is not one of
analyse granularity {scenes} --language none => needs a part-of-speech tagger
analyse granularity {scenes} --captions last => last
analyse granularity {scenes} {scenes} => two collections are called 'scenes'
analyse granularity a={scenes} b={scenes} c={scenes} => 3 collections are given
data perturb => no captions given
data perturb {captions} --perturb character-swop => did you mean 'character-swap'?
data perturb {captions} --perturb blur => blur: of images, not of captions
data perturb {captions} --perturb typing-errors --compat published => has no published form
data perturb {captions} --perturb typos,typing-errors --compat published => has no published form
data perturb {captions} --perturb meaning --compat published => has no published form
data perturb {captions} --perturb typos --set edits=2 => is not NAME.KEY=VALUE
data perturb {captions} --perturb typos --set character-swap.edits=0 => edits: Input should be greater
data perturb {captions} --perturb typos --set distraction-true.edits=0 => was not requested
data perturb {captions} --perturb typos --split test => has captions alone
data perturb {captions} --perturb 'word order' --language none => needs a part-of-speech tagger
data perturb {captions} --perturb typos --out {here} => holds other things
analyse stress {run} --out {out} --perturb nonsense => unknown perturbation 'nonsense'
analyse stress {run} --out {out} --perturb , => no perturbation was requested
analyse stress {run} --out {out} --set blur=1 => is not NAME.KEY=VALUE
analyse stress {run} --out {out} --perturb typos --set blur.radius=1 => unknown perturbation with options 'blur'
analyse stress {run} --out {out} --gallery none => 'none' is not one of 'split', 'all'
analyse stress {run} --out {out} --measure medr => medr is no mean
analyse stress {run} --out {out} --split nowhere => 'nowhere'
analyse stress {run} --out {out} --language dutch => unknown language 'dutch'
analyse stress {run} --out {out} --perturb synonym-noun --language none => synonym-noun needs a
analyse stress {run} COLLECTION --data DATA --out {out} => both COLLECTION and --data DATA
analyse stress hf:some/model --data {scenes} --out {out} => could not be loaded
compare {stressed}/letters => at least two are needed
compare {stressed}/letters {here} => is a stress run and & diptych analyse stress
compare {embedded} {here} => holds no evaluation & diptych evaluate
compare {stressed}/letters {stressed}/words --out {out} --test t => --test t is given for stress runs
compare {stressed}/letters {stressed}/words --out {out} --evaluation test => --evaluation test is given for stress runs
compare {stressed}/letters {stressed}/words --out {out} --measures MRR => letters was not stressed by MRR
compare {stressed}/letters {stressed}/words --out {out} --baseline 5 => baseline 5 of 2 runs
compare {stressed}/letters {stressed}/words --out {out} --correction sidak => 'sidak' is not one of
sparse train {run} --out {out} --set loss.ets=1 => unknown key 'loss.ets' & known there: eta
sparse train {run} --out {out} --expansion x => expansion.mode
sparse train {run} --out {out} --train trian => no split 'trian' & --train
sparse train {run} --out {out} --word-vectors none.npz =1> none.npz
sparse train {run} --out {out} --mlm no-such-folder-or-model => no-such-folder-or-model
sparse train {run} --out {here} => other things
sparse train {run} --out {out} --eta inf => finite
sparse train {run} --out {out} --mlm '' => vocabulary.source
sparse train {run} --out {out} --set head.width=1000000000000 => head.width
sparse terms {head} ' ' => empty
sparse explain {head} 'a red star' --of both => 'images', 'texts'
sparse explain {head} 'a red star' --item nothing => 'nothing'
sparse explain {here} 'a red star' => holds no
analyse protocol => no printed number is given
analyse protocol --target 'i2t R@1=5' --published {x_vlm} => both --published and --target
analyse protocol --target R@1=5 => names neither i2t nor t2i
analyse protocol --target 'i2t R@1' => is not NAME=NUMBER
analyse protocol --target 'i2t R@1=5' --also val=x => --also without a RUN
analyse protocol --target 'i2t R@1=5' --reranked x --split val => --reranked and --split without a RUN
analyse protocol --published thesis:table-2.1:x => unknown published paper 'thesis'
analyse protocol --published reproducibility:table-2.1:CLIP => Repr. CLIP, COCO
analyse protocol nowhere --target 'i2t R@1=5' => nowhere
analyse protocol {itc} --matching nowhere.npy --target 'i2t R@1=5' =1> nowhere.npy does not exist
analyse protocol {itc} --matching {itc} --matching i2t={itc} --target 'i2t R@1=5' => --matching is given 2 times
analyse protocol {itc} --matching i2t={itc} --target 'i2t R@1=5' => give i2t and t2i
analyse protocol {itc} --split test --target 'i2t R@1=5' => --split without a RUN
analyse protocol --matching {itc} --target 'i2t R@1=5' => --matching without a score matrix
analyse protocol {list} --target 'i2t R@1=5' =1> no matrix
analyse protocol {embedded} --tolerance 5 --target 'i2t R@1=5' => less than 1
analyse protocol {embedded} --also val --target 'i2t R@1=5' => --also
analyse protocol {embedded} --also test={embedded} --target 'i2t R@1=5' => --also
report {run} --split tset => tset
report {stressed}/letters --split val => --split
report {category_run} => categories evaluate
data products --levels few --out {out} => levels are 'few'
data products --levels 2- --out {out} => e.g. 1-9
data products --levels 2-12 --out {out} => levels are '2-12'
data products --n 0 --out {out} => '--n': Input should be greater
data products --skew 2 --out {out} => '--skew': Input should be less
data products --without-title -1 --out {out} => '--without-title': Input
data products --size 4 --out {out} => '--size': Input should be greater
data shop-log --format json --out {out} => 'json' is not one of 'csv', 'parquet'
data shop-log --visitors 0 --out {out} => '--visitors': Input should be greater
data scenes --objects 0 --out {out} => objects
data scenes --objects x --out {out} => objects
data scenes --objects 2- --out {out} => objects
data scenes --objects 1-9 --out {out} => objects
data show flickr30 => unknown dataset 'flickr30' & did you mean 'flickr30k'?
study show metric-learning.table-9 => unknown study
study run metric-learning.table-1 => no data given
study run --all --quick --data scenes --out {out} => --all runs every study as --quick does & study run --all --quick
study run --all --setting paper --out {out} => --all runs every study as --quick does
study run ltd.table-1 --all --quick --out {out} => --all and ltd.table-1 & or give --all alone
study run --quick --out {out} => no study given & name a study of diptych study list
study run ltd.table-1 --quick --setting data --out {out} => give one of them
study run ltd.table-1 --quick --seeds 1-3 --out {out} => --seeds 0,1,2
study run metric-learning.table-1 --quick --setting paper => --quick and --setting paper
study run metric-learning.table-1 --quick --rows 9.9 => unknown row
study run metric-learning.table-1 --quick --seeds a => give whole numbers from 0
study run metric-learning.table-1 --quick --seeds -1 => give whole numbers from 0
study verdict nowhere => holds nothing that a study has measured
study run reproducibility.table-2.1 --setting data => no data given
study run reproducibility.table-2.1 --data a=nowhere =1> nowhere
study run convse.table-3 --data a --data b => --data is given 2 times
study run reproducibility.table-2.1 --quick --set measure.k_test=-1 => measure: k_test: Input should be greater than
study run cti.table-7.1 --quick --set train.epoch=3 => unknown key of train 'epoch'
study run intent.table-6.1 => give a log with --data
study run intent.table-6.1 --data a --data b => is of one log
study run intent.table-6.1 --data a --images b => --images: intent.table-6.1 is of a shop's log
study run intent.table-6.1 --data a --skip-bad-images => leave --skip-bad-images out
study run intent.table-6.1 --data nowhere =1> nowhere is not there
study run intent.table-6.1 --data . --reader-option colour=red => an import: unknown key 'colour'
study run intent.table-6.1 --quick --regions a.npy => --regions
study run intent.table-6.1 --quick --set model.width=3 => about a training
categories pick {category_run} --among some => 'some' is not one of 'all', 'members'
categories pick {category_run} --distinct colour => distinct by 'colour'
categories pick {category_run} --split tset => did you mean 'test'?
categories pick {category_run} --images {scenes} => options of data, but no data
categories pick {category_run} {out} =1> does not exist
categories pick {category_run} --out {here} => holds other things
categories pick {scenes} =1> holds no category_run
categories fill {category_run} --out {here}/filled.xlsx => ends in '.xlsx'
categories fill {category_run} --calibrate-on train => cannot be calibrated on 'train' products
categories fill {category_run} --calibrate-on tests => --calibrate-on test
categories fill {category_run} --candidates few => 'few' is not one of 'specific', 'all'
categories fill {category_run} --threshold 2 => less than or equal to 1
categories fill {scenes} =1> holds no category_run
categories index {category_run} --engine exakt => did you mean 'exact'?
categories train {shop} --out {here} --text-encoder lsa:8 => holds other things
categories train {out} --out {out} =1> does not exist
categories train {shop} --out {out} --text-encoder lsa:8 --model clip-x => unknown trained model 'clip-x'
categories train {shop} --out {out} --text-encoder lsa:8 --model bm25 => unknown trained model 'bm25'
categories train {shop} --out {out} --text-encoder lsa:8 --setting general => unknown setting
categories train {shop} --out {out} --text-encoder lsa:8 --set temperature=0 => temperature: Input should be greater
categories train {shop} --out {out} --text-encoder lsa:8 --set temperature=-1 => got -1
categories train {shop} --out {out} --text-encoder lsa:8 --set epoch=3 => unknown key 'epoch'
categories train {shop} --out {out} --text-encoder lsa:8 --set seed=3 => --seed
categories train {shop} --out {out} --text-encoder lsa:8 --query title => 'title' is not one of 'name', 'path'
categories train {shop} --out {out} --image-encoder grid --image-option size=3 => size
categories train {shop} --out {out} --text-encoder lsa:8 --split-by colour => colour
categories train {shop} --out {out} --text-encoder lsa:8 --reader xml => xml
categories evaluate {shop} --out {out} --model clip-x => unknown model 'clip-x'
categories evaluate {shop} --out {out} --setting some => unknown setting 'some'
categories evaluate {shop} --out {out} --relevance taste => 'taste' is not one of 'label', 'path'
categories evaluate {shop} --out {out} --set epoch=1 => did you mean 'epochs'
categories evaluate {shop} --out {out} --set setting=all => --setting
categories evaluate {shop} --out {out} --set epochs=0 => epochs: Input should be greater
categories evaluate {shop} --out {out} --published --set epochs=1 => as in the thesis
categories evaluate {shop} --out {out} --run {out} =1> does not exist
categories evaluate {shop} --out {out} --run none --model clip-i => measured as it is
categories evaluate {shop} --out {out} --run none --query path => measured as it is
categories evaluate {shop} --out {out} --run none --text-encoder lsa:8 => measured as it is
categories evaluate {shop} --out {out} --model clip => dual encoder
categories evaluate {out} --out {out} =1> does not exist
categories tree {taxonomy} --format googel => unknown taxonomy format 'googel'
categories tree {taxonomy} --format google --option colour=red => has no option 'colour'
categories tree {taxonomy} --format google --reader feed => give one kind
categories tree {out} =1> does not exist
categories download {table} --out {out} => --contact
intent ingest {table} --out {out} => table.csv has columns when, who
intent ingest {table} --out {out} --column who=who => nothing is called 'who' & known: time, client
intent ingest {table} --out {out} --column time=when => table.csv has columns when, who
intent ingest {table} --out {out} --time-format iso => does not name the time
intent ingest {table} --out {out} --country ' ,' => two letters
intent ingest {table} --out {out} --country NL,Holland => 'HOLLAND' is no name
intent ingest {table} --out {out} --format rees => did you mean 'rees46'?
intent ingest {table} --out {out} --column time=when --column client=who --zone Europe/Amsterdm => /Amsterdam
intent ingest {here}/none.csv --out {out} =1> none.csv does not exist
intent describe {here} --out {out} =1> holds no log
intent describe {log} --out {here} => holds other things
intent describe {log} --out {log}/description => which the next import replaces
intent describe {log} --out {out} --by home => 'home' is not one of 'client', 'visitor', 'given'
intent describe {log} --out {out} --ddof 3 => '--ddof': Input should be less than or equal to 1
intent describe {log} --out {out} --gap 0 => gap_minutes: Input should be greater than 0
intent describe {log} --out {out} --statistic chanels => did you mean 'channels'?
intent describe {log} --out {out} --memory-limit lots => memory limit is 'lots'
intent describe {log} --out {out} --by given => brings no sessions of its own
intent features {here} --out {out} =1> holds no log
intent features {log} --out {out} --keep-leaking => is for tables of whole sessions
intent features {log} --out {out} --compat thesis => 'thesis' is not one of 'none', 'published'
intent features {log} --out {out} --feature colour => unknown feature 'colour'
intent features {log} --out {out} --gap inf => gap_minutes: Input should be a finite number
intent features {log} --out {out} --by household => household
intent evaluate {here} --out {out} =1> diptych intent features
intent evaluate {features} --out {out} --split tiem => did you mean 'time'
intent evaluate {features} --out {out} --model forest => random-forest
intent evaluate {features} --out {out} --preset quick => 'quick' is not one of 'fast', 'paper'
intent evaluate {features} --out {out} --set all => known: baseline, extended
intent evaluate {features} --out {out} --step 12 => unknown step
intent evaluate {features} --out {out} --folds 500 =1> too few with or without for 500 folds
intent evaluate {features} --out {out} --scorer {scorer} --model svm => leave out --model
intent audit {features} --check shfit => did you mean 'shift'
intent train {features} --out {out} --model hist-gradient => hist-gradient-boosting
intent train {features} --out {out} --step 11 => unknown step
intent train {features} --out {out} --holdout 0.9 =1> before the last part: 8 sessions of a class, at least 20 are
intent train {features} --out {out} --audit {here} =1> holds no leak_audit
intent train {here} --out {out} =1> holds no features
intent score {here} - =1> holds no scorer
intent score {scorer} nothing.jsonl =1> does not exist
intent score {scorer} {scorer} =1> holds no features
intent score {scorer} {features} --stream => has no lines of events
intent score {scorer} {features} => nowhere to write
intent report {here} =1> is no description, evaluation or scorer (description.json & diptych intent describe LOG
intent report {here} --least-count 0 => --least-count
"""
>>>>>>> f22-evaluation


GROUPS = {}
for _line in CASES.strip().splitlines():
    _first, _second, *_ = _line.split()
    GROUPS.setdefault(_first if _second[0] in "{-" else f"{_first} {_second}", []).append(_line)

FIXTURES = {
    **{"scenes": "scenes_folder", "run": "run_folder", "recipe": "recipe_file", "head": "head_folder"},
    **{"shop": "tiny_shop", "log": "shop_log", "category_run": "trained"},
}
FILES = {
    "captions": "cat\n",
    "taxonomy": "# Google_Product_Taxonomy_Version: 2021-09-21\n1 - Men\n2 - Men > Shoes\n",
    "table": "when,who\n1,2\n",
    "blank": "\n \n",
}
ARRAYS = {"itc": np.ones((2, 10)), "list": np.arange(10)}


class Places(dict[str, Any]):
    """What a line names: files of the test's own folder, and what the session has, made when it is first named."""

    def __init__(self, request, folder):
        super().__init__(out=folder / "out", here=folder / "here")
        self.request, self.folder = request, folder
        self["here"].mkdir(parents=True)
        (self["here"] / "precious.txt").write_text("years of work")

    def __missing__(self, name):
        if name in FILES:
            file = self.folder / f"{name}.{'csv' if name == 'table' else 'txt'}"
            file.write_text(FILES[name])
            return file
        if name in ARRAYS:
            np.save(self.folder / f"{name}.npy", ARRAYS[name])
            return self.folder / f"{name}.npy"
        if name == "rows":
            for kind in ("images", "texts"):
                np.save(self.folder / f"{kind}.npy", np.ones((1, 2), np.float32))
                (self.folder / f"{kind}.txt").write_text("a\n")
            return self.folder
        if name == "x_vlm":
            return "'reproducibility:table-2.1:Repr. X-VLM, Flickr30k'"
        found = self.request.getfixturevalue(FIXTURES.get(name, name))
        return found[1] if isinstance(found, tuple) else getattr(found, "folder", found)


@pytest.mark.parametrize("verb", GROUPS)
def test_refused(verb, diptych, request, tmp_path, monkeypatch):
    for name in ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID", "DIPTYCH_CONTACT"):
        monkeypatch.delenv(name, raising=False)
    for number, case in enumerate(GROUPS[verb]):
        line, _, words = case.partition(" =1> " if " =1> " in case else " => ")
        places = Places(request, tmp_path / str(number))
        monkeypatch.chdir(tmp_path / str(number))
        line = string.Formatter().vformat(line, (), places)
        parts = tuple(words.split(" & "))
        diptych(line, **({"failed": parts} if " =1> " in case else {"refused": parts}))
        assert not places["out"].exists()
        assert [path.name for path in places["here"].iterdir()] == ["precious.txt"]
