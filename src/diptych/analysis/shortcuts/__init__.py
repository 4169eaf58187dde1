"""Synthetic shortcuts: numbers that mean nothing, laid over images and appended to captions.

A *number* is a row in the whole collection, all splits together; a *code* is six digits, on an image as pixels
(pasted by ``encoders.preprocessing``, after crop, flip and erasure) and behind a caption as words, which a
vocabulary that is built with ``always=DIGIT_WORDS`` has at 4 … 13.
"""
