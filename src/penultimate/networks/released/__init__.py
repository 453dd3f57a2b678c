"""The authors' own 72 networks: nine objectives, eight seeds each, released as TensorFlow checkpoints.

`catalogue` says what there is, `convert` turns the checkpoints into safetensors and a table of networks.
"""
