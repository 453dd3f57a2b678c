"""The embedded image world: characters of matplotlib's fonts, drawn under nuisances.

atlas      (character, face) -> a 48 x 48 mask
nuisance   masks -> coloured 24 x 24 images
tasks      what each data set draws: classes, faces, counts
world      tasks x draws -> images
"""
