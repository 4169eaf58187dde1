"""ALBEF, X-VLM and BLIP from the checkpoints that their authors published, on towers of timm and transformers."""
