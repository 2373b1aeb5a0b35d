#!/usr/bin/env bash
# Installs the Debian packages that a build needs; does nothing, and asks no network, where they
# are installed already. Further arguments are packages to install as well.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t packages < <(grep -v '^#' scripts/debian-packages.txt)
packages+=("$@")

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: expected root or sudo to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
"${as_root[@]}" apt-get update -qq

candidate=$(apt-cache policy llvm-22-dev | sed -n 's/^ *Candidate: //p')
if [[ $candidate != *:22.1.* ]]; then
  echo "error: expected a Debian package llvm-22-dev of version 22.1, got ${candidate:-none};" \
    "it comes from the security suite of Debian 12:" \
    "'deb http://deb.debian.org/debian-security bookworm-security main' in the apt sources" >&2
  exit 1
fi
"${as_root[@]}" apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}"
