import unittest

from parcels.weight import parse_weight, show_weight, total_weight


class Weights(unittest.TestCase):
    def test_units_are_read(self):
        self.assertEqual(parse_weight("300g"), 300)
        self.assertEqual(parse_weight("1.2 kg"), 1200)
        self.assertEqual(parse_weight("2 lb"), 907)

    def test_an_unknown_unit_is_refused(self):
        with self.assertRaises(ValueError):
            parse_weight("3 stone")

    def test_quantities_count(self):
        self.assertEqual(total_weight([(300, 2), (50, 1)]), 650)

    def test_a_kilogram_is_shown_as_such(self):
        self.assertEqual(show_weight(999), "999 g")
        self.assertEqual(show_weight(1000), "1.0 kg")
