import unittest
from datetime import date

from parcels.calendar import arrival, is_working_day


class Days(unittest.TestCase):
    def test_the_weekend_is_free(self):
        self.assertTrue(is_working_day(date(2024, 5, 3)))
        self.assertFalse(is_working_day(date(2024, 5, 4)))

    def test_a_parcel_sent_on_friday_arrives_after_the_weekend(self):
        self.assertEqual(arrival(date(2024, 5, 3), working_days=1), date(2024, 5, 6))
        self.assertEqual(arrival(date(2024, 5, 3), working_days=5), date(2024, 5, 10))
