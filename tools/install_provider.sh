#!/usr/bin/env bash
# Puts the built provider where terraform and tofu look without any CLI configuration: the implied mirror ~/.terraform.d/plugins.
set -euo pipefail
case ${1:-} in "") ;; *) sed -n '2s/^# //p' "$0"; [ "$1" = --help ]; exit ;; esac
root=$(cd "$(dirname "$0")/.." && pwd)
binary=$root/build/bin/terraform-provider-sless
[ -x "$binary" ] || { echo "install_provider: $binary is not there; run make build" >&2; exit 1; }
version=$("$binary" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
[ -n "$version" ] || { echo "install_provider: $binary --version names no version" >&2; exit 1; }
case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
for host in registry.terraform.io registry.opentofu.org; do
  place=$HOME/.terraform.d/plugins/$host/sless/sless/$version/linux_$arch
  mkdir -p "$place"
  install -m 755 "$binary" "$place/terraform-provider-sless_v$version"
done
echo "installed sless/sless $version in $HOME/.terraform.d/plugins; where a .terraform.lock.hcl remembers another build of $version, remove it"
