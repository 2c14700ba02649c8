"""The toolkit command."""
