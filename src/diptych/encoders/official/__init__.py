"""ALBEF, X-VLM and BLIP from the checkpoints that their authors published, on towers of transformers.

In the order of reading::

    albef, xvlm, encoder   the encoders: what is opened, cleaned, cut and described
    prepared, pairs        the same for pixels and token ids; pairs for the matching head
    opening                a checkpoint or a saved folder becomes a model
      checkpoint           the file, read without running code of it
      layouts              whose checkpoint it is, fine-tuned or not, and which weights retrieval needs
      configuration        what is said beside the weights
      model                all parts, built and filled weight by weight
        vit, swin          the image encoders          weights         names, shapes and numbers of weights
        bert, fusion       the halves of the text's    interpolation   tables for other sizes of pictures
    inputs                 how a picture is prepared, and the tokenizer
    blip                   BLIP's layout as the model of transformers
"""
