#!/bin/sh
# Runs hcsshim's own integration tests of package hcn under Wine against the fake
# host network service: the DLLs and the service take whatever hcsshim asks. The
# outcome has to be that of e2e/wine/hcsshim.txt.
set -eu
GO=${GO:-go}
cd "$(dirname "$0")/.."
list=e2e/wine/hcsshim.txt
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

# It fails, because some tests do: what counts is which.
$GO run ./e2e/wine/fakehnsd env GOOS=windows GOARCH=amd64 "$GO" test -count=1 -v -vet=off -tags integration \
	-exec "$PWD/e2e/wine/wine-exec" github.com/Microsoft/hcsshim/hcn >"$dir/out" 2>&1 || true
sed -n 's/^--- FAIL: \([^ ]*\).*/\1/p' "$dir/out" | sort >"$dir/failed"
grep -v -e '^#' -e '^passes ' $list | sort >"$dir/expected"
passed=$(grep -c '^--- PASS: ' "$dir/out" || true)
want=$(sed -n 's/^passes //p' $list)
if ! diff "$dir/expected" "$dir/failed" >"$dir/diff" || [ "$passed" -ne "$want" ]; then
	tail -n 200 "$dir/out" >&2
	echo "hcsshim's tests: $passed pass, $want should; failures expected (<) and seen (>) in $list:" >&2
	cat "$dir/diff" >&2
	exit 1
fi
echo "hcsshim's own tests: $passed pass, $(wc -l <"$dir/failed") fail as listed in $list"
