import unittest

from parcels.pricing import discount_cents, shipping_cents, show_cents


class Prices(unittest.TestCase):
    def test_small_orders_pay_for_delivery(self):
        self.assertEqual(shipping_cents(4999, grams=500), 490)

    def test_delivery_is_free_from_fifty(self):
        self.assertEqual(shipping_cents(5000, grams=500), 0)

    def test_heavy_parcels_cost_more(self):
        self.assertEqual(shipping_cents(9000, grams=10_000), 800)
        self.assertEqual(shipping_cents(1000, grams=12_000, express=True), 2090)

    def test_a_voucher_is_rounded_down(self):
        self.assertEqual(discount_cents(999, percent=10), 99)

    def test_cents_are_shown_with_two_digits(self):
        self.assertEqual(show_cents(1205), "12.05")
