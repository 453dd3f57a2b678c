"""What training does to a batch of images."""
