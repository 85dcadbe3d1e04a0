"""Typed function signatures as JSON Schema, and arguments that are checked by them."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

Schema: TypeAlias = "dict[str, Any]"


class Unfit(ValueError):
    """A value that does not fit its type. The text is for the caller's model."""


class SchemaError(TypeError):
    """A type that has no JSON Schema."""


_PLAIN: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def schema_of(annotation: Any) -> Schema:
    """The JSON Schema of a type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is inspect.Parameter.empty or annotation is object:
        return {}
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    if annotation is None:
        return {"type": "null"}
    if origin is typing.Annotated:
        schema = schema_of(arguments[0])
        for extra in arguments[1:]:
            if isinstance(extra, str):
                schema["description"] = extra
            elif isinstance(extra, Mapping):
                schema.update(extra)
        return schema
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in arguments]}
    if annotation in (list, tuple, set) or origin in (list, set, frozenset, Sequence):
        items = schema_of(arguments[0]) if arguments else {}
        return {"type": "array", **({"items": items} if items else {})}
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is ...:
            return {"type": "array", "items": schema_of(arguments[0])}
        count = len(arguments)
        each = [schema_of(one) for one in arguments]
        return {"type": "array", "prefixItems": each, "minItems": count, "maxItems": count}
    if annotation is dict or origin in (dict, Mapping):
        if arguments and arguments[0] is not str:
            raise SchemaError(f"{annotation}: the keys of a JSON object are strings")
        values = schema_of(arguments[1]) if arguments else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [one.value for one in annotation]}
    if hasattr(annotation, "model_json_schema"):
        return dict(annotation.model_json_schema())
    fields = _fields(annotation)
    if fields is not None:
        return _object({name: schema_of(of) for name, (of, _) in fields.items()}, [n for n, (_, need) in fields.items() if need])
    raise SchemaError(f"{annotation!r} has no JSON Schema: use plain types, a dataclass, a TypedDict or an Enum")


def fit(annotation: Any, value: Any, name: str) -> Any:
    """The value as its type. ``name`` says in errors which value it is."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is inspect.Parameter.empty or annotation is object:
        return value
    if origin is typing.Annotated:
        return fit(arguments[0], value, name)
    if annotation in _PLAIN or annotation is None:
        return _plain(type(None) if annotation is None else annotation, value, name)
    if origin is Literal:
        if not any(value == one and type(value) is type(one) for one in arguments):
            raise Unfit(f"`{name}` must be one of {', '.join(map(repr, arguments))}")
        return value
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value, name)
    if annotation in (list, tuple, set) or origin in (list, set, frozenset, tuple, Sequence):
        return _items(annotation, origin, arguments, value, name)
    if annotation is dict or origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise Unfit(f"`{name}` must be an object")
        return {key: fit(arguments[1] if arguments else Any, one, f"{name}.{key}") for key, one in value.items()}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        try:
            return annotation(value)
        except ValueError:
            raise Unfit(f"`{name}` must be one of {', '.join(repr(one.value) for one in annotation)}") from None
    if hasattr(annotation, "model_validate"):
        try:
            return annotation.model_validate(value)
        except ValueError as error:
            raise Unfit(f"`{name}`: {error}") from None
    return _structure(annotation, value, name)


def _plain(annotation: Any, value: Any, name: str) -> Any:
    if annotation is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if annotation is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, annotation) and (annotation is bool or not isinstance(value, bool)):
        return value
    article = "an" if annotation is int else "a"
    raise Unfit(f"`{name}` must be {'null' if annotation is type(None) else f'{article} {_PLAIN[annotation]}'}")


def _one_of(arguments: Sequence[Any], value: Any, name: str) -> Any:
    reasons = []
    for one in arguments:
        try:
            return fit(one, value, name)
        except Unfit as error:
            reasons.append(str(error))
    raise Unfit("; or ".join(dict.fromkeys(reasons)))


def _items(annotation: Any, origin: Any, arguments: Sequence[Any], value: Any, name: str) -> Any:
    if not isinstance(value, list):
        raise Unfit(f"`{name}` must be an array")
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is ...):
        if len(value) != len(arguments):
            raise Unfit(f"`{name}` must have {len(arguments)} elements")
        return tuple(fit(of, one, f"{name}[{at}]") for at, (of, one) in enumerate(zip(arguments, value)))
    of = arguments[0] if arguments else Any
    fitted = [fit(of, one, f"{name}[{at}]") for at, one in enumerate(value)]
    kind = origin if isinstance(origin, type) and origin is not Sequence else annotation
    return kind(fitted) if kind in (tuple, set, frozenset) else fitted


def _fields(annotation: Any) -> dict[str, tuple[Any, bool]] | None:
    """The fields of a dataclass or a TypedDict, with their types and whether each is required."""
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        hints = get_type_hints(annotation, include_extras=True)
        needed = dataclasses.MISSING
        return {
            one.name: (hints[one.name], one.default is needed and one.default_factory is needed)
            for one in dataclasses.fields(annotation)
            if one.init
        }
    if typing.is_typeddict(annotation):
        hints, required = get_type_hints(annotation), getattr(annotation, "__required_keys__", frozenset[str]())
        return {name: (of, name in required) for name, of in hints.items()}
    return None


def _structure(annotation: Any, value: Any, name: str) -> Any:
    fields = _fields(annotation)
    if fields is None:
        raise SchemaError(f"{annotation!r} has no JSON Schema")
    if not isinstance(value, dict):
        raise Unfit(f"`{name}` must be an object")
    fitted = _members(fields, value, lambda key: f"{name}.{key}")
    return fitted if typing.is_typeddict(annotation) else annotation(**fitted)


def _members(
    fields: Mapping[str, tuple[Any, bool]], value: Mapping[str, Any], named: Callable[[str], str]
) -> dict[str, Any]:
    for key in value:
        if key not in fields:
            raise Unfit(f"`{named(key)}` is unknown")
    for key, (_, is_required) in fields.items():
        if is_required and key not in value:
            raise Unfit(f"`{named(key)}` is missing")
    return {key: fit(fields[key][0], one, named(key)) for key, one in value.items()}


def _object(properties: dict[str, Schema], required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


class Signature:
    """The parameters of a function that a caller gives, and the one that receives the request."""

    def __init__(self, function: Callable[..., Any], request_type: type) -> None:
        try:
            hints = get_type_hints(function, include_extras=True)
        except (NameError, TypeError) as error:
            name = getattr(function, "__name__", function)
            raise SchemaError(f"the types of `{name}` cannot be read: {error}") from None
        self.returns: Any = hints.get("return", inspect.Parameter.empty)
        self.request_parameter: str | None = None
        self._fields: dict[str, tuple[Any, bool]] = {}
        self._defaults: dict[str, Any] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise SchemaError(f"the parameter `{name}` has no name that a caller could give")
            annotation = hints.get(name, inspect.Parameter.empty)
            if annotation is request_type or request_type in get_args(annotation):
                self.request_parameter = name
                continue
            is_required = parameter.default is inspect.Parameter.empty
            self._fields[name] = (annotation, is_required)
            if not is_required:
                self._defaults[name] = parameter.default
        self.properties = {name: self._property(name, annotation) for name, (annotation, _) in self._fields.items()}

    def _property(self, name: str, annotation: Any) -> Schema:
        schema = schema_of(annotation)
        default = self._defaults.get(name)
        if isinstance(default, (str, int, float, bool)):
            schema["default"] = default
        return schema

    @property
    def names(self) -> list[str]:
        """The parameters that a caller gives."""
        return list(self._fields)

    @property
    def required(self) -> list[str]:
        """Those without a default."""
        return [name for name, (_, is_required) in self._fields.items() if is_required]

    def schema(self) -> Schema:
        """The JSON Schema of the arguments."""
        return _object(self.properties, self.required)

    def fit(self, arguments: Mapping[str, Any], request: object) -> dict[str, Any]:
        """The arguments as the function takes them.

        Raises:
            Unfit: one is missing, unknown, or of another type.
        """
        fitted = _members(self._fields, arguments, lambda key: key)
        if self.request_parameter is not None:
            fitted[self.request_parameter] = request
        return fitted


def output_schema(annotation: Any) -> Schema | None:
    """The JSON Schema of a result with members that are known, else ``None``."""
    if annotation is inspect.Parameter.empty or get_origin(annotation) is not None:
        return None
    if _fields(annotation) is None and not hasattr(annotation, "model_json_schema"):
        return None
    return schema_of(annotation)


def to_json(value: Any) -> Any:
    """A result as plain JSON values: dataclasses, enums, sets, tuples and models become what JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return to_json(value.value)
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(one) for one in value]
    return value
