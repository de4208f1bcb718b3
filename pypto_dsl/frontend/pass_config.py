"""Settings of PyPTO's passes by strategy, pass and key: kept and given back; they steer dumps that this compiler makes on demand."""
from __future__ import annotations

import enum
from dataclasses import dataclass

from pypto_dsl.compiler.errors import error, value_text
from pypto_dsl.frontend.spans import here


class PassConfigKey(enum.Enum):
    """What can be set of one of PyPTO's passes."""

    KEY_PRINT_GRAPH = "printGraph"
    KEY_DUMP_GRAPH = "dumpGraph"
    KEY_DUMP_PASS_TIME_COST = "dumpPassTimeCost"
    KEY_PRE_CHECK = "preCheck"
    KEY_POST_CHECK = "postCheck"
    KEY_DISABLE_PASS = "disablePass"
    KEY_HEALTH_CHECK = "healthCheck"


@dataclass(frozen=True)
class PassConfigs:
    """Every setting of one pass, under PyPTO's names."""

    printGraph: bool = False
    dumpGraph: bool = False
    dumpPassTimeCost: bool = False
    preCheck: bool = False
    postCheck: bool = False
    disablePass: bool = False
    healthCheck: bool = False


_settings: dict[tuple[str, str, PassConfigKey], bool] = {}
_DEFAULT = ("", "")


def _checked(key: object) -> PassConfigKey:
    if isinstance(key, PassConfigKey):
        return key
    raise error("PT114", f"a setting of a pass is a PassConfigKey, and got {key!r}", here(), help="pypto.PassConfigKey.KEY_DUMP_GRAPH")


def _named(name: object) -> str:
    if isinstance(name, str):
        return name
    raise error("PT114", f"strategies and passes are named by text, and got {value_text(name)}", here(), help='"promote"')


def set_pass_config(strategy: str, identifier: str, key: PassConfigKey, value: bool) -> None:
    """Keep a setting of a pass. `ptc opt --print-after` and `kernel.graph(after=...)` show passes here. Raises PT114 for another key."""
    if not isinstance(value, (bool, int)):
        raise error("PT114", f"a setting of a pass is on or off, and got {value_text(value)}", here(), help="True or False")
    _settings[_named(strategy), _named(identifier), _checked(key)] = bool(value)


def get_pass_config(strategy: str, identifier: str, key: PassConfigKey, default_value: bool) -> bool:
    """A setting of a pass, or ``default_value`` where none was set. Raises PT114 for another key."""
    return _settings.get((_named(strategy), _named(identifier), _checked(key)), default_value)


def set_pass_default_config(key: PassConfigKey, value: bool) -> None:
    """Keep a setting for every pass that has none of its own. Raises PT114 for another key."""
    set_pass_config(*_DEFAULT, key, value)


def get_pass_default_config(key: PassConfigKey, default_value: bool) -> bool:
    """What `set_pass_default_config` was last given. Raises PT114 for another key."""
    return get_pass_config(*_DEFAULT, key, default_value)


def get_pass_configs(strategy: str, identifier: str) -> PassConfigs:
    """Every setting of a pass."""
    return PassConfigs(**{
        key.value: get_pass_config(strategy, identifier, key, get_pass_default_config(key, False)) for key in PassConfigKey})
