"""What a small shop charges for sending things."""
