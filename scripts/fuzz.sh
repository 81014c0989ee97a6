#!/bin/sh
# Runs every fuzz target of the module for a while. Usage: scripts/fuzz.sh 50000x
set -eu
GO=${GO:-go}
time=${1:-50000x}

for pkg in $($GO list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
	dir=$($GO list -f '{{.Dir}}' "$pkg")
	for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' || true); do
		$GO test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg" ||
			{ echo "fuzzing $pkg $target failed; the input is in testdata/fuzz/$target of the package" >&2; exit 1; }
	done
done
