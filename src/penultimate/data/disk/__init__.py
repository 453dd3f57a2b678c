"""Images that stay on disk: decoded in worker processes, resized, cropped, copied."""
