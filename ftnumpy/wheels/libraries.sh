# What CPython is compiled with.  Where there is no dnf, the base has it already.
set -e
if command -v dnf >/dev/null; then
  dnf install -y @PACKAGES@
  dnf clean all
fi
