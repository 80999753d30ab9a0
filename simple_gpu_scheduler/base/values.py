"""Values, and the words of types, without loading `typing` or `collections`: a start would spend 12 ms more on them.

`typing` itself takes 5 ms, with `re`, which it loads; each of its 200 named tuples takes 0.1 ms, since it checks the
type of each field and compiles source text. To the type checker these are the names of `typing` and `collections.abc`.
At run time a value is a tuple with named fields, as there, and a type is a word that nothing asks.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable as Callable
    from collections.abc import Collection as Collection
    from collections.abc import Container as Container
    from collections.abc import Iterable as Iterable
    from collections.abc import Iterator as Iterator
    from collections.abc import Mapping as Mapping
    from collections.abc import Sequence as Sequence
    from typing import Any as Any
    from typing import Generic as Generic
    from typing import Literal as Literal
    from typing import NamedTuple as NamedTuple
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
    from typing import TypeVar as TypeVar
    from typing import get_args as get_args
else:
    from _collections import _tuplegetter  # what `collections.namedtuple` uses

    # What `collections.abc` is, which would load `collections`; Python itself has loaded this by now.
    from _collections_abc import Callable as Callable
    from _collections_abc import Collection as Collection
    from _collections_abc import Container as Container
    from _collections_abc import Iterable as Iterable
    from _collections_abc import Iterator as Iterator
    from _collections_abc import Mapping as Mapping
    from _collections_abc import Sequence as Sequence

    _Function = type(lambda: None)
    _VALUES = 1  # of the formats in which annotations can be asked for
    _constructors = {}

    def _constructor(fields, defaults):
        """The `__new__` for these fields. Those of as many fields differ only in the names of their arguments."""
        code = _constructors.get(len(fields))
        if code is None:
            names = "".join([f"_{at}, " for at in range(len(fields))])
            function = eval(f"lambda _class, {names}: _new(_class, ({names}))", {})  # noqa: S307 - text of ours
            code = _constructors[len(fields)] = function.__code__
        named = code.replace(co_varnames=("_class", *fields))
        return _Function(named, {"_new": tuple.__new__}, "__new__", defaults)

    class _Value(tuple):
        """What all values can do."""

        __slots__ = ()

        def _replace(self, **changes):
            values = [changes.pop(name, old) for name, old in zip(self._fields, self, strict=True)]
            if changes:
                raise ValueError(f"{type(self).__name__} has no field {', '.join(changes)}")
            return tuple.__new__(type(self), values)

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            fields = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)]
            return f"{type(self).__name__}({', '.join(fields)})"

        def __getnewargs__(self):
            return tuple(self)

    class _Maker(type):
        def __new__(cls, name, bases, space):
            if not bases:
                return super().__new__(cls, name, bases, space)
            annotate = space.get("__annotate_func__")  # since Python 3.14
            fields = tuple(annotate(_VALUES) if annotate else space.get("__annotations__", ()))
            defaults = {field: space[field] for field in fields if field in space}
            space |= {field: _tuplegetter(at, field) for at, field in enumerate(fields)}
            space["__slots__"] = ()
            space["__match_args__"] = space["_fields"] = fields
            space["_field_defaults"] = defaults
            space["__new__"] = _constructor(fields, tuple(defaults.values()))
            return type(name, (_Value,), space)

    class NamedTuple(metaclass=_Maker):
        """A class of values: its annotations are the fields."""

    class _Word:
        """A word of a type."""

        def __init__(self, args=()):
            self.args = args

        def __getitem__(self, args):
            return _Word(args if isinstance(args, tuple) else (args,))

        def __or__(self, other):
            return self

        __ror__ = __or__

        def __call__(self, *_args, **_named):  # a TypeVar
            return self

    Any = Literal = NoReturn = TypeVar = _Word()

    class Protocol:
        """A class whose subclasses need not say so."""

    class Generic:
        """A class with a type as its parameter."""

        def __class_getitem__(cls, _parameter):
            return cls

    def get_args(word):
        """The values of a `Literal`."""
        return word.args
