"""The program without what only Unix or some Pythons have: fcntl, os.fork, gensim, mwparserfromhell."""

import sys
from pathlib import Path

import pytest
from contract.command_line import ROOT, SETTINGS, STEP_TOKENS, checkpoint_steps, elmo_zh, run_python, succeed
from drawn_bundles import SHAPES, write_model

from elmo_zh.corpus import content
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import locked

# Modules and names that Python has only on Unix, by its documentation, and calls that Windows refuses: it flushes no
# file that is open for reading only, and makes links only in developer mode. torch and the standard library keep what
# they found as they were imported.
AS_ON_WINDOWS = """\
import errno, fcntl, multiprocessing, os, signal, subprocess, sys
import torch

flush, state = os.fsync, fcntl.fcntl

def flush_written(descriptor):
    if state(descriptor, fcntl_getfl) & (os.O_WRONLY | os.O_RDWR) == 0:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    flush(descriptor)

def refuse_link(*_, **__):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))

fcntl_getfl, os.fsync, os.symlink = fcntl.F_GETFL, flush_written, refuse_link
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
only_unix = {
    os: "O_DIRECTORY O_NOFOLLOW chown confstr copy_file_range fchown fdatasync fork getgid getgroups getloadavg getuid"
    " killpg lchown mkfifo nice posix_fadvise posix_fallocate pread pwrite register_at_fork sched_getaffinity sendfile"
    " setsid sync sysconf uname wait",
    signal: "ITIMER_REAL SIGALRM SIGCHLD SIGCONT SIGHUP SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 SIG_BLOCK"
    " SIG_UNBLOCK alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigwait",
}
for module, names in only_unix.items():
    for name in names.split():
        module.__dict__.pop(name, None)
"""


def test_every_module_is_imported_and_models_are_trained_and_used_without_what_only_unix_has(tmp_path: Path) -> None:
    bundle = write_model(tmp_path / "model", SHAPES["character"])
    (tmp_path / "settings.toml").write_text(SETTINGS, encoding="utf-8")
    code = f"""
import importlib, pkgutil
import elmo_zh
from elmo_zh.cli import main

print(elmo_zh.ElmoEmbedder.load({str(bundle)!r}).embed_tokens([["今天", "天气"]])[0].shape[1])
others = ("elmo_zh.__main__", "elmo_zh.sklearn", "elmo_zh.spacy")
for module in pkgutil.walk_packages(elmo_zh.__path__, "elmo_zh."):
    if module.name not in others:
        importlib.import_module(module.name)
sys.argv[1:] = ["pipeline", {str(ROOT / "data" / "sample" / "stories.txt")!r}, "--run", "runs/a"]
sys.argv += ["--config", "settings.toml", "--set", "train.max_tokens={2 * STEP_TOKENS}"]
main()
"""
    answer = run_python("-c", AS_ON_WINDOWS + code, cwd=tmp_path)
    assert (answer.status, answer.stdout[:2]) == (0, "2\n"), answer.stderr
    assert checkpoint_steps(tmp_path / "runs" / "a") == [2]
    assert "Warning: Could not link runs/latest to the run" in answer.stderr


def test_nothing_is_locked_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with locked(tmp_path / ".lock", "in use"), locked(tmp_path / ".lock", "in use"):
        pass


def test_a_python_that_gensim_has_no_wheel_for(untrained_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert succeed("word2vec", "--run", untrained_run, "--force").stderr.splitlines()[-1].endswith(", torch.")
    answer = elmo_zh("word2vec", "--run", untrained_run, "--set", "word2vec.implementation=gensim")
    assert answer.only_error().endswith("or use --set word2vec.implementation=torch")


def test_a_python_that_mwparserfromhell_has_no_wheel_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mwparserfromhell", None)
    monkeypatch.setattr(content.sys, "version_info", (3, 14, 0))
    with pytest.raises(
        CorpusError, match=r"^a wiki dump needs mwparserfromhell, which cannot be installed on Python 3\.14"
    ):
        content.import_extra("mwparserfromhell", "a wiki dump")
