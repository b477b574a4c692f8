"""`privamp budget`: limit what is released about a population, across programs."""

import typer

from ..options import ExampleCommand
from . import audit, manage, renew

group = typer.Typer(no_args_is_help=True, help="Limit what is released about a population, across programs.")
group.command("create", cls=ExampleCommand, epilog=manage.CREATE_EXAMPLES)(manage.create)
group.command("show", cls=ExampleCommand, epilog=manage.SHOW_EXAMPLES)(manage.show)
group.command("log", cls=ExampleCommand, epilog=manage.LOG_EXAMPLES)(manage.log)
group.command("cancel", cls=ExampleCommand, epilog=manage.CANCEL_EXAMPLES)(manage.cancel)
group.command("head", cls=ExampleCommand, epilog=audit.HEAD_EXAMPLES)(audit.head)
group.command("verify", cls=ExampleCommand, epilog=audit.VERIFY_EXAMPLES)(audit.verify)
group.command("backup", cls=ExampleCommand, epilog=audit.BACKUP_EXAMPLES)(audit.backup)
group.command("rotate-key", cls=ExampleCommand, epilog=renew.ROTATE_EXAMPLES)(renew.rotate_key)
group.command("migrate", cls=ExampleCommand, epilog=renew.MIGRATE_EXAMPLES)(renew.migrate)
