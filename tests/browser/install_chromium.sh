#!/bin/sh
# Installs Debian's chromium and its driver for the browser tests, once. Without root or apt nothing happens:
# the tests then skip and say why.
command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1 && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 0
echo "Installing chromium for the browser tests (once) ..."
install() { DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends chromium chromium-driver; }
install >/dev/null 2>&1 || { apt-get update --quiet >/dev/null 2>&1 && install >/dev/null 2>&1; } || true
exit 0
