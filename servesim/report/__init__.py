"""Reports: from tables to figures, and from figures to HTML pages that need nothing but a browser."""
