"""The packing slip."""

from parcels.pricing import shipping_cents, show_cents
from parcels.weight import show_weight, total_weight

LINES_PER_PAGE = 20


def pages(lines: int) -> int:
    """How many pages so many lines take."""
    return (lines + LINES_PER_PAGE - 1) // LINES_PER_PAGE


def slip(order: list[tuple[str, int, int, int]]) -> str:
    """The slip of an order; each line of it is (name, cents, grams, quantity)."""
    subtotal = sum(cents * quantity for _, cents, _, quantity in order)
    grams = total_weight([(grams, quantity) for _, _, grams, quantity in order])
    rows = [f"{quantity} x {name}: {show_cents(cents * quantity)}" for name, cents, _, quantity in order]
    shipping = shipping_cents(subtotal, grams)
    return "\n".join(
        [*rows, f"weight: {show_weight(grams)}", f"shipping: {show_cents(shipping)}", f"total: {show_cents(subtotal + shipping)}"]
    )
