#!/bin/sh
# Installs the Debian packages that a goal of the Makefile needs and that are
# missing. Usage: scripts/deps.sh PACKAGE...
#
# openvswitch-switch would start the machine's own switch when it is installed
# under systemd. Nothing here uses that one, so services are held back for the
# time of the installation by the means Debian has for it (policy-rc.d).
set -eu

missing=
for p in "$@"; do
	case $(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null || true) in
	installed) ;;
	*) missing="$missing $p" ;;
	esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "missing Debian packages:$missing" >&2
	echo "install them (apt-get install --no-install-recommends$missing) or run this as root" >&2
	exit 1
fi
echo "installing$missing"

policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\n# Made by podnet for one apt-get install: start no service.\nexit 101\n' >$policy
	chmod 755 $policy
	trap 'rm -f $policy' EXIT
	trap 'exit 1' INT TERM HUP
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
install() {
	# shellcheck disable=SC2086
	apt-get install -y -q --no-install-recommends $missing >"$log" 2>&1
}
# The package lists of a fresh container are empty or old.
if ! install; then
	apt-get update -q >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; exit 1; }
	install || { cat "$log" >&2; rm -f "$log"; exit 1; }
fi
rm -f "$log"
