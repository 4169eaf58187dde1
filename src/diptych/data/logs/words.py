"""The words that logs have for things: what is read as a missing identifier, an action, a device, a yes, a bot."""

from __future__ import annotations

from collections.abc import Mapping

from diptych.data.logs.schema import UNKNOWN

MISSING_WORDS = (
    "null",
    "NULL",
    "Null",
    "(null)",
    "none",
    "None",
    "NONE",
    "nan",
    "NaN",
    "NAN",
    "na",
    "NA",
    "N/A",
    "n/a",
    "undefined",
    "\\N",
    "-",
)
"""Of a client, visitor, session or item: nobody's. Without this all that are nobody's would be one busy visitor."""

ACTION_WORDS: Mapping[str, tuple[str, ...]] = {
    "page": (
        "page",
        "pageview",
        "page_view",
        "page view",
        "view",
        "view_item",
        "viewproduct",
        "click",
        "detail",
        "open",
        "visit",
        "browse",
    ),
    "query": ("query", "search", "site_search", "view_search_results"),
    "add": ("add", "addtocart", "add_to_cart", "add to cart", "add_to_basket", "cart", "basket"),
    "remove": ("remove", "removefromcart", "remove_from_cart", "remove from cart", "remove_from_basket"),
    "purchase": ("purchase", "buy", "bought", "transaction", "order", "checkout_complete", "conversion"),
    "other": ("other", "login", "log-in", "log_in", "logout", "log-out", "log_out", "sign_up", "scroll"),
}
"""Canonical action → the words for it, where nobody said others."""

DEVICE_WORDS: Mapping[str, tuple[str, ...]] = {
    "pc": ("pc", "desktop", "computer", "laptop", "personal computer"),
    "smartphone": ("smartphone", "mobile", "phone", "mobile phone", "mobilephone", "smart phone"),
    "tablet": ("tablet", "tablet pc"),
    "game console": ("game console", "console", "games console", "game_console", "gameconsole"),
    "tv": ("tv", "smart tv", "smart_tv", "smarttv", "television", "connected tv"),
    UNKNOWN: (UNKNOWN, "(not set)", *sorted({word.lower() for word in MISSING_WORDS})),
}
"""Device type → the words for it; other words are device types by themselves."""

YES_WORDS = ("1", "true", "t", "yes", "y")

BOT_WORDS = (
    "bot([^a-z]|$)",
    "crawl",
    "spider",
    "slurp",
    "scrap(y|er)",
    "headless",
    "phantomjs",
    "selenium",
    "puppeteer",
    "playwright",
    "python-(requests|urllib)",
    "aiohttp",
    "httpx/",
    "curl/",
    "wget/",
    "libwww",
    "java/",
    "go-http-client",
    "apache-httpclient",
    "facebookexternalhit",
    "mediapartners",
    "lighthouse",
    "pingdom",
    "uptimerobot",
    "statuscake",
)
"""Regular expressions that a bot's user agent holds, in lower case (Bomhardt et al., 2005, for the idea)."""

NO_BOT = "cubot"
"""A brand of smartphones, whose name ends like a bot's."""


def printable(word: str) -> str:
    """A log's word without what a terminal would take for a command."""
    return "".join(letter if letter.isprintable() else "?" for letter in word)
