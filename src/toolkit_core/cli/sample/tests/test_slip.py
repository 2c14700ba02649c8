import unittest

from parcels.slip import pages, slip


class Slips(unittest.TestCase):
    def test_a_full_page_stays_one_page(self):
        self.assertEqual(pages(0), 0)
        self.assertEqual(pages(20), 1)
        self.assertEqual(pages(21), 2)

    def test_a_slip_adds_up(self):
        text = slip([("mug", 1250, 400, 2), ("tea", 600, 100, 1)])
        self.assertIn("2 x mug: 25.00", text)
        self.assertIn("weight: 900 g", text)
        self.assertIn("total: 35.90", text)
