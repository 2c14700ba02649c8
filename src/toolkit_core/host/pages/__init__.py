"""What came over the wire as text: bodies, charsets, kinds of content, HTML as Markdown."""
