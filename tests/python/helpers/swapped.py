"""Texts, and what a mechanism that swaps words makes of them."""

SWAPPED = {"tea": "coffee", "coffee": "tea", "king": "queen", "queen": "king"}
TEXTS = ["tea and king", None, "", "Queen, coffee!\n", "tea"]
WANTED = ["coffee [MASK] queen", None, "", "king, tea!\n", "coffee"]
SECRET = "Xanthippe"
