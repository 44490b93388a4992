# Names that cibuildwheel calls, and NumPy's build requirements, from the folder that came along.
set -e
cd /opt/python/@FOLDER@/bin
ln -sf @PYTHON@ python
ln -sf @PIP@ pip
# cibuildwheel asks a Python of this name to copy files.
test -x /opt/python/cp39-cp39/bin/python || ln -s @FOLDER@ /opt/python/cp39-cp39
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
./python -m pip --isolated install --no-index --no-cache-dir --find-links /ftnumpy/packages @REQUIRES@
rm -rf /ftnumpy/packages
mkdir -p /ftnumpy/pkg-config
./python -c 'import scipy_openblas64; print(scipy_openblas64.get_pkg_config())' >/ftnumpy/pkg-config/scipy-openblas.pc
