#!/bin/sh
# Installs LangGraph JS and a Node.js at the versions of package-lock.json into node_modules, which git ignores. It downloads
# packages of the npm registry and nothing else: no install script runs, and the one native module is compiled here. Where that
# is not possible it says why and fails.
set -eu
cd "$(dirname "$0")"

say() { echo "bench-peers: $*" >&2; }

if cmp -s package-lock.json node_modules/.installed; then exit 0; fi
if ! command -v npm > /dev/null; then
	say "there is no npm, so LangGraph JS cannot be installed"
	exit 1
fi
if ! npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2; then
	say "npm could not install LangGraph JS"
	exit 1
fi

# The Node.js of the lock file is there on Linux on x64, with its headers. Elsewhere it is the machine's own.
if [ -x node_modules/.bin/node ]; then PATH="$PWD/node_modules/.bin:$PATH"; fi
headers=$(node -p 'path.dirname(path.dirname(fs.realpathSync(process.execPath)))')
if ! [ -f "$headers/include/node/node.h" ]; then
	say "there are no headers of Node.js in $headers/include, so its SQLite cannot be compiled"
	exit 1
fi
say "compiling SQLite for Node.js, which takes a minute or two"
export npm_config_nodedir="$headers" # a machine may have set another; it wins over the flag of that name
if ! npm explore better-sqlite3 -- node-gyp rebuild --release --loglevel=error > node_modules/.build.log 2>&1 ||
	! node -e 'require("better-sqlite3")(":memory:")' >> node_modules/.build.log 2>&1; then
	tail -n 20 node_modules/.build.log >&2
	say "SQLite for Node.js could not be compiled; that needs a C++ compiler, make and Python"
	exit 1
fi
cp package-lock.json node_modules/.installed
