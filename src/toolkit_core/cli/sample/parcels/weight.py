"""Weights: read from text, added up, shown."""

GRAMS_PER_UNIT = {"g": 1, "kg": 1000, "oz": 28.349523125, "lb": 453.59237}


def parse_weight(text: str) -> int:
    """Grams in a text such as "1.2 kg" or "300g"."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz").strip()
    unit = text.strip()[len(number) :].strip() or "g"
    if unit not in GRAMS_PER_UNIT:
        raise ValueError(f"unknown unit {unit!r} in {text!r}")
    return round(float(number) * GRAMS_PER_UNIT[unit])


def total_weight(items: list[tuple[int, int]]) -> int:
    """Grams of all items, each given as (grams, quantity)."""
    return sum(grams * quantity for grams, quantity in items)


def show_weight(grams: int) -> str:
    """Text for a person: grams below a kilogram, else kilograms with one decimal."""
    if grams < 1000:
        return f"{grams} g"
    return f"{grams / 1000:.1f} kg"
