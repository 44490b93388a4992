"""asv's plugin for the stack's history: a commit's environment is the one that ftnumpy has built for it.

asv would build a commit and install it into an environment of its own.  Here interpreter and NumPy both change from
commit to commit, and both are built and in an environment already.  ``pythons.json`` in asv's ``env_dir`` says where:
``{"<environment>": {"<commit>": "<python>"}}``; ``nox -s bench`` writes it.
"""

from __future__ import annotations

import json
from pathlib import Path

from asv import util
from asv.environment import Environment


class StackEnvironment(Environment):
    """All commits of one series and profile: ``asv run -E ftnumpy:3.13t``."""

    tool_name = "ftnumpy"
    matches_python_fallback = False

    def __init__(self, conf, python, requirements, tagged_env_vars):
        self._pythons = Path(conf.env_dir).resolve() / "pythons.json"
        self._commit = None
        # asv's own class asks for its name, which is made of these, before it sets them.
        self._python, self._requirements = python, requirements
        super().__init__(conf, python, requirements, tagged_env_vars)

    @property
    def installed_commit_hash(self):
        return self._commit

    def check_presence(self):
        return True

    def create(self):
        pass

    def install_project(self, conf, repo, commit_hash):
        self._executable(commit_hash)
        self._set_commit_hash(commit_hash)
        self._commit = commit_hash

    def find_executable(self, executable):
        return str(Path(self._executable(self._commit)).with_name(executable))

    def run(self, args, **kwargs):
        return self.run_executable("python", args, **kwargs)

    def _executable(self, commit):
        try:
            return json.loads(self._pythons.read_text(encoding="utf-8"))[self._python][commit]
        except (FileNotFoundError, KeyError):
            raise util.UserError(
                f"{self._pythons} has no python for commit {commit} of {self._python}; 'nox -s bench' makes it"
            ) from None
