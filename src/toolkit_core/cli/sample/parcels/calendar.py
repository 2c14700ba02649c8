"""When a parcel arrives: working days only."""

from datetime import date, timedelta

SATURDAY = 5


def is_working_day(day: date) -> bool:
    """Monday to Friday."""
    return day.weekday() < SATURDAY


def arrival(sent: date, working_days: int) -> date:
    """The day of arrival, so many working days after the day of sending."""
    day = sent
    left = working_days
    while left > 0:
        day += timedelta(days=1)
        if is_working_day(day):
            left -= 1
    return day
