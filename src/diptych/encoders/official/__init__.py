"""ALBEF and X-VLM from the checkpoints that their authors published, on towers of transformers."""
