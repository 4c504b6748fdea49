"""The command `unlearn migrate`."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.commands.options import KEEP_THE_KEY, ModelDir
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.ledger.directory import shell_command


def migrate(
    model_dir: ModelDir,
    key_file: Annotated[
        Path | None,
        typer.Option(
            help="File for the key of pseudonyms, outside the model directory: a new file, or the one that has the key."
        ),
    ] = None,
) -> None:
    """Convert a directory of an earlier release to the present format, which names people by pseudonyms.

    The command converts the whole directory or nothing. A second run changes nothing. Heads and receipts stay valid.
    """
    from certified_unlearning.ledger.identifiers.migration import migrate as migrate_directory

    with interruptible(lambda: f"nothing is lost; `{shell_command('migrate', model_dir)}` finishes the work"):
        done = migrate_directory(model_dir, key_file)
        said = f"{model_dir}: people {'have' if done.has_hidden else 'already have'} pseudonyms"
        with after(f"{said} (head: {done.head})"):
            print(said + ("; heads and receipts are unchanged" if done.has_hidden else "; nothing to migrate"))
            if done.key_file is not None:
                print(f"the key of pseudonyms is in {done.key_file}: {KEEP_THE_KEY}")
            if done.old_key_file is not None:
                print(f"note: {done.old_key_file} still contains the key: delete it there")
            if done.has_hidden:
                for earlier in done.earlier_logs:
                    print(f"note: {earlier}, where the log was kept earlier, still has plain identifiers")
                print("Older backups and copies still have plain identifiers: migrate or delete them yourself.")
            print(f"head: {done.head}")
