"""The embedded image world: characters of matplotlib's fonts, drawn under nuisances.

atlas      (character, face) -> a 48 x 48 mask
nuisance   masks -> coloured 24 x 24 images
selection  the characters of each task, without look-alikes
tasks      the classes, faces and counts of each data set
world      tasks x draws -> images
"""
