"""A fixed vocabulary of data, in which the snippet and the context of DS-1000 exchange values.

It goes from one process to the other as JSON, so that what arrives is made anew from numbers and
text: no object brings its own `__eq__`, and no code. JSON's null, booleans, numbers and strings
stand for themselves; every other value is a list that begins with its tag, such as
`["pandas.RangeIndex", 0, 3, 1, null]`. Types are taken exactly, because a subclass may compare in
a way of its own. Masked arrays are left out for that reason: NumPy's assertions take one with
every element masked for equal to anything.

It needs the standard library, and the packages of the values themselves. `sandbox.py` puts it into
the sandbox as text.
"""

import base64
import datetime
import decimal
import fractions
from typing import Any

PLAIN_KINDS = "biufcmMSU"
"""Kinds of NumPy's data types whose bytes are their values."""
SPARSE = frozenset(
    f"{layout}_{kind}"
    for layout in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    for kind in ("matrix", "array")
)


class NoDataError(Exception):
    """Raised for a value that is not of the vocabulary."""


def encode(value: Any) -> Any:
    """Encodes a value as what `json` writes.

    Raises:
        NoDataError: the value, or a part of it, is not of the vocabulary.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    library = kind.__module__.partition(".")[0]
    tag = f"{library}.{kind.__name__}"
    match tag:
        case "builtins.list" | "builtins.tuple" | "builtins.set" | "builtins.frozenset":
            return [tag, *map(encode, value)]
        case (
            "builtins.dict"
            | "collections.OrderedDict"
            | "collections.defaultdict"
            | "collections.Counter"
        ):
            return ["builtins.dict", *([encode(k), encode(v)] for k, v in value.items())]
        case "builtins.complex":
            return [tag, value.real, value.imag]
        case "builtins.bytes":
            return [tag, base64.b64encode(value).decode()]
        case "builtins.range" | "builtins.slice":
            return [tag, encode(value.start), encode(value.stop), encode(value.step)]
        case "datetime.date":
            return [tag, value.isoformat()]
        case "datetime.time" | "datetime.datetime" if value.tzinfo is None:
            return [tag, value.isoformat()]
        case "datetime.timedelta":
            return [tag, value.days, value.seconds, value.microseconds]
        case "decimal.Decimal" | "fractions.Fraction":
            return [tag, str(value)]
        case "torch.Tensor" if str(value.layout) == "torch.strided":
            plain = value.detach().cpu()
            if str(plain.dtype) == "torch.bfloat16":
                plain = plain.float()
            return [tag, str(value.dtype).removeprefix("torch."), encode(plain.numpy())]
    if library == "numpy":
        return _encode_numpy(tag, value)
    if library == "pandas":
        return _encode_pandas(tag, value)
    if library == "scipy" and kind.__name__ in SPARSE:
        coo = value.tocoo()
        return [tag, list(coo.shape), encode(coo.row), encode(coo.col), encode(coo.data)]
    raise NoDataError(f"{kind.__module__}.{kind.__name__} is not data")


def decode(encoded: Any) -> Any:
    """Decodes what `encode` wrote down; the value is made anew.

    Raises:
        Exception: of any kind, where `encoded` is not what `encode` writes.
    """
    if not isinstance(encoded, list):
        if isinstance(encoded, dict):
            raise NoDataError("a JSON object is not of the vocabulary")
        return encoded
    tag, *parts = encoded
    library, _, name = str(tag).partition(".")
    match tag:
        case "builtins.list":
            return [decode(part) for part in parts]
        case "builtins.tuple":
            return tuple(decode(part) for part in parts)
        case "builtins.set":
            return {decode(part) for part in parts}
        case "builtins.frozenset":
            return frozenset(decode(part) for part in parts)
        case "builtins.dict":
            return {decode(key): decode(item) for key, item in parts}
        case "builtins.complex":
            return complex(*parts)
        case "builtins.bytes":
            return base64.b64decode(parts[0])
        case "builtins.range":
            return range(*parts)
        case "builtins.slice":
            return slice(*map(decode, parts))
        case "datetime.date" | "datetime.time" | "datetime.datetime":
            return getattr(datetime, name).fromisoformat(parts[0])
        case "datetime.timedelta":
            return datetime.timedelta(*parts)
        case "decimal.Decimal":
            return decimal.Decimal(parts[0])
        case "fractions.Fraction":
            return fractions.Fraction(parts[0])
        case "torch.Tensor":
            import torch

            dtype = getattr(torch, parts[0])
            if not isinstance(dtype, torch.dtype):
                raise NoDataError(f"{parts[0]} is not a data type of torch")
            return torch.tensor(decode(parts[1]), dtype=dtype)
    if library == "numpy":
        return _decode_numpy(name, parts)
    if library == "pandas":
        return _decode_pandas(name, parts)
    if library == "scipy" and name in SPARSE:
        import scipy.sparse

        row, column, data = map(decode, parts[1:])
        coo = scipy.sparse.coo_matrix((data, (row, column)), shape=tuple(parts[0]))
        return getattr(scipy.sparse, name)(coo)
    raise NoDataError(f"{tag} is not of the vocabulary")


def _encode_numpy(tag: str, value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.generic):
        return ["numpy.generic", encode(np.asarray(value))]
    if tag == "numpy.matrix":
        return [tag, encode(np.asarray(value))]
    if tag != "numpy.ndarray":
        raise NoDataError(f"{tag} is not data")
    if value.dtype == object:
        return ["numpy.objects", list(value.shape), *map(encode, value.ravel().tolist())]
    if value.dtype.kind not in PLAIN_KINDS:
        raise NoDataError(f"an array of {value.dtype} is not of the vocabulary")
    held = base64.b64encode(value.tobytes()).decode()
    return [tag, value.dtype.str, list(value.shape), held]


def _decode_numpy(name: str, parts: list[Any]) -> Any:
    import numpy as np

    match name:
        case "generic":
            return decode(parts[0])[()]
        case "matrix":
            return np.matrix(decode(parts[0]))
        case "objects":
            shape, *items = parts
            array = np.empty(len(items), dtype=object)
            for place, item in enumerate(items):
                array[place] = decode(item)
            return array.reshape(shape)
        case "ndarray":
            kind, shape, held = parts
            dtype = np.dtype(kind)
            if dtype.kind not in PLAIN_KINDS:
                raise NoDataError(f"an array of {dtype} is not of the vocabulary")
            return np.frombuffer(base64.b64decode(held), dtype).reshape(shape).copy()
    raise NoDataError(f"numpy.{name} is not of the vocabulary")


def _encode_pandas(tag: str, value: Any) -> Any:
    import pandas as pd

    match tag:
        case "pandas.NaTType" | "pandas.NAType":
            return [tag]
        case "pandas.Timestamp":
            naive = value if value.tz is None else value.tz_convert("UTC").tz_localize(None)
            return [tag, encode(naive.to_datetime64()), value.tz and str(value.tz)]
        case "pandas.Timedelta":
            return [tag, encode(value.to_timedelta64())]
        case "pandas.Period":
            return [tag, value.ordinal, value.freqstr]
        case "pandas.Interval":
            return [tag, encode(value.left), encode(value.right), value.closed]
        case "pandas.Categorical":
            return [tag, encode(value.codes), encode(value.categories), bool(value.ordered)]
        case "pandas.DataFrame":
            columns = [_column(value.iloc[:, n]) for n in range(value.shape[1])]
            return [tag, encode(value.index), encode(value.columns), *columns]
        case "pandas.Series":
            return [tag, encode(value.index), encode(value.name), _column(value)]
        case "pandas.RangeIndex":
            return [tag, value.start, value.stop, value.step, encode(value.name)]
        case "pandas.MultiIndex":
            codes = [list(map(int, level)) for level in value.codes]
            return [tag, encode(list(value.levels)), codes, encode(list(value.names))]
    if isinstance(value, pd.DatetimeIndex | pd.TimedeltaIndex):
        return ["pandas.Index", encode(value.name), _column(value), value.freqstr]
    if isinstance(value, pd.Index):
        return ["pandas.Index", encode(value.name), _column(value), None]
    if isinstance(value, pd.api.extensions.ExtensionArray):
        return _column(pd.Series(value))
    raise NoDataError(f"{tag} is not data")


def _column(values: Any) -> Any:
    """The values of a series or an index: NumPy's by their bytes, others one by one."""
    import numpy as np
    import pandas as pd

    if isinstance(values.array, pd.Categorical):
        return encode(values.array)
    if isinstance(values.dtype, np.dtype):
        return encode(values.to_numpy())
    return ["pandas.array", str(values.dtype), *map(encode, values.astype(object).tolist())]


def _decode_pandas(name: str, parts: list[Any]) -> Any:
    import pandas as pd

    match name:
        case "NaTType":
            return pd.NaT
        case "NAType":
            return pd.NA
        case "Timestamp":
            moment = pd.Timestamp(decode(parts[0]))
            return moment if parts[1] is None else moment.tz_localize("UTC").tz_convert(parts[1])
        case "Timedelta":
            return pd.Timedelta(decode(parts[0]))
        case "Period":
            return pd.Period(ordinal=parts[0], freq=parts[1])
        case "Interval":
            return pd.Interval(decode(parts[0]), decode(parts[1]), parts[2])
        case "Categorical":
            codes, categories, ordered = decode(parts[0]), decode(parts[1]), parts[2]
            return pd.Categorical.from_codes(codes, categories, ordered=ordered)
        case "array":
            dtype, *items = parts
            return pd.array([decode(item) for item in items], dtype=dtype)
        case "Series":
            index, called, column = map(decode, parts)
            return pd.Series(column, index=index, name=called)
        case "DataFrame":
            index, columns, *held = map(decode, parts)
            frame = pd.DataFrame(dict(enumerate(held)), index=index)
            frame.columns = columns
            return frame
        case "RangeIndex":
            return pd.RangeIndex(*parts[:3], name=decode(parts[3]))
        case "MultiIndex":
            levels, codes, names = parts
            return pd.MultiIndex(decode(levels), codes, names=decode(names))
        case "Index":
            called, column, freq = parts
            index: Any = pd.Index(decode(column), name=decode(called))
            if freq is not None:
                index.freq = freq
            return index
    raise NoDataError(f"pandas.{name} is not of the vocabulary")
