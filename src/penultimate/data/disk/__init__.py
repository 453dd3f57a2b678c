"""Images that stay on disk, which worker processes decode, resize, crop and copy."""
