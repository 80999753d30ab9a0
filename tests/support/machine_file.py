"""Running programs on a machine that has the machine file: in a mount namespace with an /etc of its own."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.sharing import mount_namespace, unmeasured

_ETC = """
cp -a /etc own_etc 2>/dev/null
mount --bind own_etc /etc || exit 99
cat > /etc/simple_gpu_scheduler.toml << 'END_OF_FILE'
{content}
END_OF_FILE
chmod 644 /etc/simple_gpu_scheduler.toml
unset SGS_LEASE_DIR
"""


def on_machine_with(content: str, script: str, directory: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a shell script prints there; $SGS is the program. Without SGS_LEASE_DIR, unless the script sets it."""
    return mount_namespace(_ETC.format(content=content) + script, directory, environment or unmeasured())
