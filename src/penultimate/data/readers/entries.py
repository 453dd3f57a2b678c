"""Published image data sets, as data: what each is, which files of it go where, and what reads them.

Splits are those of Kornblith et al. (2021), table A.2, corrected: "train" is all that is not tested on, and
so the official validation images of Flowers are in it; ImageNet is tested on its validation images.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from penultimate.data.catalog import DatasetCard
from penultimate.data.corruptions.catalogue import SEVERITIES, TITLES
from penultimate.errors import unknown


@dataclass(frozen=True)
class PublishedSet:
    """A published data set that a user has on disk.

    card          what it is, with the official number of images of each split and the official score
    reader        "module:function" of this room, which gives the `Listing` of a split: (entry, root, split)
    folder        what its folder is called; --root is that folder, or the one that holds it
    layout        which files go where in it
    obtain        where to get it
    archives      what it is published as; where they lie in --root, `penultimate data get` unpacks them
    torchvision   the class of torchvision's that downloads it, if one does
    """

    card: DatasetCard
    reader: str
    folder: str
    layout: tuple[str, ...]
    obtain: str
    archives: tuple[str, ...] = ()
    torchvision: str = ""


_NONE = "none stated"
_BY_WNID = ("n01440764/*.JPEG ... (a folder for each class, named by its WordNet id)",)
_SUBSET = "Scored among the classes that occur in it."
_FLICKR = "the photographers' licences (images from Flickr)"

_IMAGENET = PublishedSet(
    DatasetCard(
        "imagenet",
        "ImageNet (ILSVRC 2012)",
        1000,
        {"train": 1281167, "test": 50000},
        "top1",
        "the pretraining set",
        "ImageNet's terms of access: research and education that is not commercial",
        "Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015",
        note="Tested on its validation images; the labels of its test images were never published.",
    ),
    "imagenet:imagenet",
    "imagenet",
    (
        "train/n01440764/*.JPEG ... (1000 folders), or ILSVRC2012_img_train.tar as it comes",
        "val/n01440764/*.JPEG ..., or val/ILSVRC2012_val_00000001.JPEG ..., or ILSVRC2012_img_val.tar",
        "ILSVRC2012_devkit_t12.tar.gz, which labels val where it has no folders (or LOC_val_solution.csv)",
        "(or Kaggle's ILSVRC/Data/CLS-LOC/train and val, with its LOC_ files beside ILSVRC)",
    ),
    "register at https://image-net.org/download.php (ILSVRC 2012, tasks 1 and 2); the archives are read as"
    " they are, nothing has to be unpacked",
)


def _with_holdout(whole: PublishedSet, count: int, reader: str, which: str) -> PublishedSet:
    """Return the same data set, read from the same folder, with some of its training images held out."""
    card, sizes = whole.card, whole.card.sizes
    return replace(
        whole,
        card=replace(
            card,
            name=f"{card.name}_tuning",
            title=f"{card.title.partition(' (')[0]} with a holdout",
            sizes={"train": sizes["train"] - count, "test": sizes["test"], "holdout": count},
            note=f"Of its training images {count:,} are held out, as in Kornblith et al. (2021); {which} the"
            " paper does not say: those whose names have the smallest sha256.",
        ),
        reader=f"parts:{reader}",
    )


_PARTS = (
    _with_holdout(_IMAGENET, 50_046, "held_out", "which"),
    replace(
        _IMAGENET,
        card=replace(
            _IMAGENET.card,
            name="imagenet100",
            title="ImageNet-100",
            classes=100,
            sizes={"train": 126689, "test": 5000},
            citation="Tian et al., Contrastive Multiview Coding, ECCV 2020, whose hundred classes these are",
            note="A hundred of ImageNet's classes, drawn by the authors cited. Tested on its validation"
            " images.",
        ),
        reader="parts:hundred",
    ),
)

_SHIFTS = (
    PublishedSet(
        DatasetCard(
            "imagenet_v2",
            "ImageNet-V2 (matched frequency)",
            1000,
            {"test": 10000},
            "top1",
            "ImageNet's classes, collected again",
            f"MIT; {_FLICKR}",
            "Recht et al., Do ImageNet Classifiers Generalize to ImageNet?, ICML 2019",
            source="imagenet",
        ),
        "imagenet:wnid_folders",
        "imagenetv2-matched-frequency-format-val",
        ("0/*.jpeg ... 999/*.jpeg (a folder for each class, numbered in the order of the WordNet ids)",),
        "imagenetv2-matched-frequency.tar.gz from https://huggingface.co/datasets/vaishaal/ImageNetV2",
        ("imagenetv2-matched-frequency.tar.gz",),
    ),
    PublishedSet(
        DatasetCard(
            "imagenet_a",
            "ImageNet-A",
            200,
            {"test": 7500},
            "top1",
            "images of 200 of ImageNet's classes that a ResNet-50 gets wrong",
            "MIT",
            "Hendrycks et al., Natural Adversarial Examples, CVPR 2021",
            note=_SUBSET,
            source="imagenet",
        ),
        "imagenet:wnid_folders",
        "imagenet-a",
        _BY_WNID,
        "https://people.eecs.berkeley.edu/~hendrycks/imagenet-a.tar",
        ("imagenet-a.tar",),
    ),
    PublishedSet(
        DatasetCard(
            "imagenet_r",
            "ImageNet-R",
            200,
            {"test": 30000},
            "top1",
            "200 of ImageNet's classes as art, cartoons, toys, tattoos, ...",
            "MIT",
            "Hendrycks et al., The Many Faces of Robustness, ICCV 2021",
            note=_SUBSET,
            source="imagenet",
        ),
        "imagenet:wnid_folders",
        "imagenet-r",
        _BY_WNID,
        "https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar",
        ("imagenet-r.tar",),
    ),
    PublishedSet(
        DatasetCard(
            "imagenet_sketch",
            "ImageNet-Sketch",
            1000,
            {"test": 50889},
            "top1",
            "ImageNet's classes as sketches",
            "MIT",
            "Wang et al., Learning Robust Global Representations by Penalizing Local Predictive Power,"
            " NeurIPS 2019",
            source="imagenet",
        ),
        "imagenet:wnid_folders",
        "sketch",
        _BY_WNID,
        "ImageNet-Sketch.zip, by https://github.com/HaohanWang/ImageNet-Sketch",
        ("ImageNet-Sketch.zip",),
    ),
    PublishedSet(
        DatasetCard(
            "imagenet_c",
            "ImageNet-C",
            1000,
            {f"{corruption}/{severity}": 50000 for corruption in TITLES for severity in SEVERITIES},
            "top1",
            "ImageNet's validation images, corrupted in 19 ways of 5 severities",
            "CC BY 4.0",
            "Hendrycks and Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and"
            " Perturbations, ICLR 2019",
            source="imagenet",
        ),
        "imagenet:corrupted",
        "imagenet-c",
        ("gaussian_noise/1/n01440764/*.JPEG ... (or noise/gaussian_noise/1/..., as the archives unpack)",),
        "https://zenodo.org/records/2235448: noise.tar, blur.tar, weather.tar, digital.tar (and extra.tar)",
        ("noise.tar", "blur.tar", "weather.tar", "digital.tar", "extra.tar"),
    ),
)

_TRANSFER = (
    PublishedSet(
        DatasetCard(
            "food101",
            "Food-101",
            101,
            {"train": 75750, "test": 25250},
            "top1",
            "dishes",
            "scientific fair use (images from foodspotting.com)",
            "Bossard et al., Food-101: Mining Discriminative Components with Random Forests, ECCV 2014",
        ),
        "published:food101",
        "food-101",
        ("images/apple_pie/*.jpg ...", "meta/classes.txt", "meta/train.txt", "meta/test.txt"),
        "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz",
        ("food-101.tar.gz",),
        "Food101",
    ),
    PublishedSet(
        DatasetCard(
            "cifar10",
            "CIFAR-10",
            10,
            {"train": 50000, "test": 10000},
            "top1",
            "objects and animals, 32 x 32",
            _NONE,
            "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        ),
        "published:cifar10",
        "cifar-10-batches-py",
        ("data_batch_1 ... data_batch_5", "test_batch", "batches.meta"),
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        ("cifar-10-python.tar.gz",),
        "CIFAR10",
    ),
    PublishedSet(
        DatasetCard(
            "cifar100",
            "CIFAR-100",
            100,
            {"train": 50000, "test": 10000},
            "top1",
            "objects and animals, 32 x 32",
            _NONE,
            "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        ),
        "published:cifar100",
        "cifar-100-python",
        ("train", "test", "meta"),
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        ("cifar-100-python.tar.gz",),
        "CIFAR100",
    ),
    PublishedSet(
        DatasetCard(
            "birdsnap",
            "Birdsnap",
            500,
            {"train": 47386, "test": 2443},
            "top1",
            "species of North American birds",
            _FLICKR,
            "Berg et al., Birdsnap: Large-Scale Fine-Grained Visual Categorization of Birds, CVPR 2014",
        ),
        "published:birdsnap",
        "birdsnap",
        ("images.txt", "species.txt", "test_images.txt", "download/images/Acadian_Flycatcher/*.jpg ..."),
        "http://thomasberg.org/datasets/birdsnap/1.1/birdsnap.tgz, whose get_birdsnap.py gets the images;"
        " many of their links are gone, and what is missing is counted",
        ("birdsnap.tgz",),
    ),
    PublishedSet(
        DatasetCard(
            "sun397",
            "SUN397",
            397,
            {"train": 19850, "test": 19850},
            "top1",
            "scenes",
            "research only",
            "Xiao et al., SUN Database: Large-scale Scene Recognition from Abbey to Zoo, CVPR 2010",
            note="The first of the ten official splits.",
        ),
        "published:sun397",
        "SUN397",
        ("a/abbey/sun_*.jpg ...", "ClassName.txt", "Training_01.txt", "Testing_01.txt"),
        "SUN397.tar.gz, and Partitions.zip for the two lists, by https://vision.princeton.edu/projects/2010/SUN"
        " (the links to the files are gone; copies of them serve)",
        ("SUN397.tar.gz", "Partitions.zip"),
    ),
    PublishedSet(
        DatasetCard(
            "cars",
            "Stanford Cars",
            196,
            {"train": 8144, "test": 8041},
            "top1",
            "makes and models of cars",
            "research that is not commercial",
            "Krause et al., 3D Object Representations for Fine-Grained Categorization, 3dRR 2013",
        ),
        "published:cars",
        "stanford_cars",
        (
            "cars_train/00001.jpg ...",
            "cars_test/00001.jpg ...",
            "devkit/cars_meta.mat",
            "devkit/cars_train_annos.mat",
            "cars_test_annos_withlabels.mat",
        ),
        "its site is gone; cars_train.tgz, cars_test.tgz, car_devkit.tgz and"
        " cars_test_annos_withlabels.mat are in other people's copies",
        ("cars_train.tgz", "cars_test.tgz", "car_devkit.tgz"),
    ),
    PublishedSet(
        DatasetCard(
            "pets",
            "Oxford-IIIT Pets",
            37,
            {"train": 3680, "test": 3669},
            "mean_per_class",
            "breeds of cats and dogs, most of them ImageNet's",
            "CC BY-SA 4.0",
            "Parkhi et al., Cats and Dogs, CVPR 2012",
            note="The paper prints 3,369 test images, a misprint.",
        ),
        "published:pets",
        "oxford-iiit-pet",
        ("images/Abyssinian_1.jpg ...", "annotations/trainval.txt", "annotations/test.txt"),
        "https://www.robots.ox.ac.uk/~vgg/data/pets: images.tar.gz and annotations.tar.gz",
        ("images.tar.gz", "annotations.tar.gz"),
        "OxfordIIITPet",
    ),
    PublishedSet(
        DatasetCard(
            "flowers102",
            "Oxford 102 Flowers",
            102,
            {"train": 2040, "test": 6149},
            "mean_per_class",
            "species of flowers",
            _NONE,
            "Nilsback and Zisserman, Automated Flower Classification over a Large Number of Classes,"
            " ICVGIP 2008",
            note="Its 1,020 training and 1,020 validation images are trained on, as in the paper.",
        ),
        "published:flowers102",
        "flowers-102",
        ("jpg/image_00001.jpg ...", "imagelabels.mat", "setid.mat"),
        "https://www.robots.ox.ac.uk/~vgg/data/flowers/102: 102flowers.tgz, imagelabels.mat, setid.mat",
        ("102flowers.tgz",),
        "Flowers102",
    ),
)

_CHEXPERT = PublishedSet(
    DatasetCard(
        "chexpert",
        "CheXpert",
        5,
        {"train": 200983, "test": 22431, "validation": 234},
        "auc",
        "chest radiographs: another kind of image, and labels that are findings",
        "Stanford University School of Medicine, CheXpert Dataset Research Use Agreement",
        "Irvin et al., CheXpert: A Large Chest Radiograph Dataset with Uncertainty Labels and Expert"
        " Comparison, AAAI 2019",
        "Uncertain labels are -1; what is not mentioned is absent. No patient is in two splits.",
    ),
    "chexpert:chexpert",
    "CheXpert-v1.0-small",
    (
        "train.csv, valid.csv",
        "train/patient00001/study1/view1_frontal.jpg ..., valid/patient64541/study1/view1_frontal.jpg ...",
        "(or a folder CheXpert-v1.0 with the same)",
    ),
    "register at https://stanfordmlgroup.github.io/competitions/chexpert for CheXpert-v1.0-small.zip",
    ("CheXpert-v1.0-small.zip",),
)

_CIFAR = tuple(
    _with_holdout(whole, 5_000, "cifar_held_out", "how many and which")
    for whole in _TRANSFER
    if whole.card.name.startswith("cifar")
)

ENTRIES: Mapping[str, PublishedSet] = MappingProxyType(
    {entry.card.name: entry for entry in (_IMAGENET, *_PARTS, *_SHIFTS, *_TRANSFER, _CHEXPERT, *_CIFAR)}
)


def entry(name: str) -> PublishedSet:
    """Return the entry of that name; an unknown one raises with the nearest."""
    if name not in ENTRIES:
        raise unknown("published data set", name, ENTRIES)
    return ENTRIES[name]
