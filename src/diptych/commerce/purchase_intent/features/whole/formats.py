"""Known tables of whole sessions; adding one is one file here."""

from __future__ import annotations

from diptych.commerce.purchase_intent.features.whole.declaration import SESSION_TABLES, SessionTable

# UCI 468, Online Shoppers Purchasing Intention: 12,330 sessions of a shop in one year, one per user.
#
# Sakar, Polat, Katircioglu and Kastro, Real-time prediction of online shoppers' purchasing intention using
# multilayer perceptron and LSTM recurrent neural networks, 2019.
UCI_SHOPPERS = SESSION_TABLES.add(
    SessionTable(
        name="uci-shoppers",
        description="online_shoppers_intention.csv of the UCI repository (468): 12,330 whole sessions",
        label="Revenue",
        columns={
            "Administrative": "number",
            "Administrative_Duration": "number",
            "Informational": "number",
            "Informational_Duration": "number",
            "ProductRelated": "number",
            "ProductRelated_Duration": "number",
            "BounceRates": "number",
            "ExitRates": "number",
            "PageValues": "number",
            "SpecialDay": "number",
            "Month": "text",
            "OperatingSystems": "text",  # numbers of kinds, in no order
            "Browser": "text",
            "Region": "text",
            "TrafficType": "text",
            "VisitorType": "text",
            "Weekend": "text",
        },
        leaking={
            "PageValues": "it is the value of transactions that followed the pages, this session's own among them"
        },
        notes=(
            "rows are whole sessions: nothing is said about how early in them a purchase could be foreseen",
            "nobody says who a session is of: every row counts as somebody else",
            "of times only the month's name is there, so that sessions cannot be split by time",
        ),
    )
)
