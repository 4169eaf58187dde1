"""ALBEF, X-VLM and BLIP from the checkpoints that their authors published, on towers of transformers.

In the order of reading::

    encoder, prepared   ALBEF and X-VLM: what is opened, cleaned, cut, described and computed
    checkpoint          the file, whose it is, fine-tuned or not, and which weights retrieval needs
    inputs              configurations, how an image is prepared, and the tokenizer
    model               all parts, built and filled weight by weight
      vit, swin         the image encoders, and their tables for images of another size
      bert              the text encoder's two halves
      weights           names, shapes and numbers of weights
    blip                BLIP's layout as the model of transformers
"""
