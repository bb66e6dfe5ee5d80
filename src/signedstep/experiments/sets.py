"""The data sets of the paper's Table 1, as LIBSVM offers them, and two that scikit-learn brings along."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


def stretched(X: np.ndarray) -> np.ndarray:
    """Each feature moved linearly to [-1, 1], as svm-scale does; a constant one becomes 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.where(high > low, (2 * X - (low + high)) / np.where(high > low, high - low, 1), 0.0)


def standardised(X: np.ndarray) -> np.ndarray:
    """Each feature moved to mean 0 and variance 1; a constant one becomes 0."""
    varies = X.max(axis=0) > X.min(axis=0)
    return np.where(varies, (X - X.mean(axis=0)) / np.where(varies, X.std(axis=0), 1), 0.0)


@dataclass(frozen=True)
class DataSet:
    """What is known of a data set before it is read, and how it is scaled once it is."""

    name: str
    rows: int
    features: int
    labels: Mapping[int, int]
    """Rows with each of the two labels, as the file has them."""
    content: str | None
    """sha256 of the numbers in it, whatever the layout of the text; None: not known."""
    scaling: str
    """How the features are scaled when the experiments get them."""
    source: str
    file: str | None = None
    """Its name on LIBSVM's page; None: scikit-learn has it."""
    sha256: str | None = None
    """Of the decompressed text of the copy we know."""
    rescale: Callable[[np.ndarray], np.ndarray] | None = None
    """What `load` does to make `scaling` true."""
    remark: str = ""
    page: str = PAGE

    @property
    def url(self) -> str | None:
        return self.file and self.page + self.file


_BINARY = "0/1 features, as they are"
_PAGE_SCALED = "to [-1, 1] by LIBSVM's page"
_STRETCHED = "each feature to [-1, 1] by us"

_ROWS = (
    DataSet(
        name="a1a",
        rows=1605,
        features=119,
        labels={-1: 1210, 1: 395},
        content="a8f4e3ff619e50920740f72aa1d8ce2b9c6706cf707d7dc46b7854de055df03a",
        scaling=_BINARY,
        source="UCI Adult",
        file="a1a",
        sha256="eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",
        remark="the page counts 123 features; the last four do not occur in these rows",
    ),
    DataSet(
        name="a9a",
        rows=32561,
        features=123,
        labels={-1: 24720, 1: 7841},
        content="e101b173f87b37cd70692ce66741a1969b6d2ee0f3bd506b2600d541379e4f7c",
        scaling=_BINARY,
        source="UCI Adult",
        file="a9a",
        sha256="f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    ),
    DataSet(
        name="colon-cancer",
        rows=62,
        features=2000,
        labels={-1: 40, 1: 22},
        content="654c4146e1a50c4528e757bd1320c31670f8eab2ca68e17477b4a6bd5faa6ee7",
        scaling="each feature to mean 0, variance 1 by LIBSVM's page",
        source="Alon et al. 1999",
        file="colon-cancer.bz2",
        sha256="647eb57da9d5df273c8728a19033d80cf09bca70f4d35d1a2de5a281036bf35b",
        remark="the page's preprocessing could not be repeated exactly from the raw data",
    ),
    DataSet(
        name="gisette",
        rows=6000,
        features=5000,
        labels={-1: 3000, 1: 3000},
        content=None,
        scaling=_PAGE_SCALED,
        source="NIPS 2003 feature selection challenge",
        file="gisette_scale.bz2",
        remark="no copy was at hand, so only shape and labels are checked",
    ),
    DataSet(
        name="heart",
        rows=270,
        features=13,
        labels={-1: 150, 1: 120},
        content="41b51dea617882e613f08fc843f44c3013e7984a2c7b00d46c2b98604d8227f3",
        scaling=_PAGE_SCALED,
        source="UCI Statlog (Heart)",
        file="heart_scale",
        sha256="5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9",
        remark="the page also has it unscaled",
    ),
    DataSet(
        name="ijcnn1",
        rows=35000,
        features=22,
        labels={-1: 31585, 1: 3415},
        content="f6afec0d09aeba1ea4017b055b0297627addb5423b6f088424534badf2641c52",
        scaling="as it is, within [-0.94, 1]",
        source="IJCNN 2001 challenge",
        file="ijcnn1.tr.bz2",
        sha256="9454b7a9d98fcb83e4b79f1094b996aec75909677a77eede6094a9bb4f71c461",
        remark="training part without the validation part; our copy's features were not compared with a second one",
    ),
    DataSet(
        name="ionosphere",
        rows=351,
        features=34,
        labels={-1: 126, 1: 225},
        content="627d9919c3a8ed913a8aa6daa3295eb2cce124100c9c554131270b64f773f75e",
        scaling=_PAGE_SCALED,
        source="UCI Ionosphere",
        file="ionosphere_scale",
        sha256="f7751584264819b6ea908d513180cec6f9d9fad0d54e7f5693407da1e2eaece1",
    ),
    DataSet(
        name="leukemia",
        rows=38,
        features=7129,
        labels={-1: 11, 1: 27},
        content="827b8ac0ee91aca05f09ab160b8113ddc58551162e7bfda9c6a2da13014cb153",
        scaling="each feature to mean 0, variance 1 by LIBSVM's page, over these and 34 other samples",
        source="Golub et al. 1999",
        file="leu.bz2",
        sha256="95d1d089712937c6661d3beb218bcb02be5b0f7c17c13cbdbb19787b1fce87f8",
    ),
    DataSet(
        name="madelon",
        rows=2000,
        features=500,
        labels={-1: 1000, 1: 1000},
        content="950600f87b127dca772570025b6ba9d639e10941a9dbbfac06da3396add3a4b2",
        scaling=_STRETCHED,
        source="NIPS 2003 feature selection challenge",
        file="madelon",
        sha256="4801c452441772b47674fa8deb3724b1cb897eff49ccd8d47078367080c05b54",
        rescale=stretched,
        remark="0 to 999 in the file, which saturates a network; the page's text may be laid out otherwise than ours",
    ),
    DataSet(
        name="mushrooms",
        rows=8124,
        features=112,
        labels={1: 3916, 2: 4208},
        content="1700db849a3e5955c8c4aeb2cf626cb224c98848f2d2c4617b0edd7c2d92e6a4",
        scaling=_BINARY,
        source="UCI Mushroom",
        file="mushrooms",
        sha256="f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
    ),
    DataSet(
        name="splice",
        rows=1000,
        features=60,
        labels={-1: 483, 1: 517},
        content="252ad3dce91982a9209ef8dd150730d4c9884c7532cd337e03cd33cf293bbf56",
        scaling=_STRETCHED,
        source="Delve splice",
        file="splice",
        sha256="eee33566cfe8988ec26122460cc712d66c5c5b79b966b259408e803addaa584d",
        rescale=stretched,
        remark="1 to 4 in the file; so scaled it is the page's other version, and which one the paper used is unknown",
    ),
    DataSet(
        name="svmguide3",
        rows=1243,
        features=22,
        labels={-1: 947, 1: 296},
        content="fcfe6f5b1e3d19ca010efd8f392a901e38dc2c2c3bfb5a33972512c25819f2cd",
        scaling="as it is, within [-0.91, 5]",
        source="Hsu, Chang & Lin's guide to SVM",
        file="svmguide3",
        sha256="ada17021fdf508bcaac7b7adea825886478f915935eccb24470f22c806dc4508",
        remark="feature 22 is 0 in every row; the page's text may have other line ends than ours",
    ),
    DataSet(
        name="w1a",
        rows=2477,
        features=300,
        labels={-1: 2405, 1: 72},
        content="8587d32f31c96e1ed216f24f9622f782951aca1f577738d8fefde58b6e1a3bd4",
        scaling=_BINARY,
        source="Platt 1998, web pages",
        file="w1a",
        sha256="0ae2b1c40f6a99061d1c6f4a1f3b50eea58a2f3b8bf851a337c25c2a65a49d32",
    ),
    DataSet(
        name="w8a",
        rows=49749,
        features=300,
        labels={-1: 48270, 1: 1479},
        content="70ea23e98b91f4206f7bf718d23c83328507c29baf0038eaf4f91b329db751a2",
        scaling=_BINARY,
        source="Platt 1998, web pages",
        file="w8a",
        sha256="6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
    ),
    DataSet(
        name="breast_cancer",
        rows=569,
        features=30,
        labels={0: 212, 1: 357},
        content="1efa2eb8942d1f21e3da627c29b31449b50a5e4fe879c34a30cb9ad804bba36c",
        scaling="each feature to mean 0, variance 1 by us",
        source="scikit-learn (UCI Breast Cancer Wisconsin), malignant -1, benign +1",
        rescale=standardised,
        remark="not in the paper",
    ),
    DataSet(
        name="digits",
        rows=1797,
        features=64,
        labels={0: 891, 1: 906},
        content="1a1a26327511fb46d0330d532bdd1eb3fbbaa2c80274b1d3b99d5448099ba60c",
        scaling=_STRETCHED,
        source="scikit-learn (UCI Optical Recognition of Digits), even -1, odd +1",
        rescale=stretched,
        remark="not in the paper",
    ),
)

SETS: dict[str, DataSet] = {row.name: row for row in _ROWS}
