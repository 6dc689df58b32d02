#!/usr/bin/env bash
set -euo pipefail
cargo-bundle-licenses --format yaml --output THIRDPARTY.yml
make -o setup install PREFIX="$PREFIX"
