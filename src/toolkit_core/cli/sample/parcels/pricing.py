"""Prices, all in cents."""

STANDARD_CENTS = 490
EXPRESS_CENTS = 1290
FREE_FROM_CENTS = 5000
HEAVY_FROM_GRAMS = 10_000
HEAVY_CENTS = 800


def shipping_cents(subtotal_cents: int, grams: int, express: bool = False) -> int:
    """What sending costs. Standard delivery is free from 50.00; heavy parcels cost more."""
    heavy = HEAVY_CENTS if grams >= HEAVY_FROM_GRAMS else 0
    if express:
        return EXPRESS_CENTS + heavy
    if subtotal_cents > FREE_FROM_CENTS:
        return heavy
    return STANDARD_CENTS + heavy


def discount_cents(subtotal_cents: int, percent: int) -> int:
    """The part of the subtotal that a voucher takes off, rounded down."""
    return subtotal_cents * percent // 100


def show_cents(cents: int) -> str:
    """Text for a person: 1234 is "12.34"."""
    return f"{cents // 100}.{cents % 100:02d}"
