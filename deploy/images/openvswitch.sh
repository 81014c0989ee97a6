#!/bin/sh
# Runs one daemon of Open vSwitch in the foreground, for a container of its own:
#   openvswitch database     ovsdb-server, the database is made when there is none
#   openvswitch switch       ovs-vswitchd, once the database answers
#
# All that they keep is below /run/openvswitch. It should die with the boot, as
# Pods do: after a reboot the database would list ports that nobody has.
# Debian's ovs-ctl is not used: it wants systemd's or init's environment and the
# kernel module even where the datapath is in userspace.
set -eu

run=/run/openvswitch
db=$run/conf.db
schema=/usr/share/openvswitch/vswitch.ovsschema
log='-vconsole:info -vsyslog:off -vfile:off'

case ${1:-} in
database)
	mkdir -p $run
	if [ ! -e $db ]; then
		# A half-written database would stop every later start.
		rm -f $db.new
		ovsdb-tool create $db.new $schema
		mv $db.new $db
	elif [ "$(ovsdb-tool needs-conversion $db $schema)" = yes ]; then
		ovsdb-tool convert $db $schema
	fi
	# shellcheck disable=SC2086
	exec ovsdb-server $db --remote=punix:$run/db.sock --pidfile $log
	;;
switch)
	version=$(ovs-vswitchd --version | sed -n '1s/.* //p')
	ovs-vsctl --retry --timeout=60 --no-wait -- init -- set Open_vSwitch . \
		"ovs-version=$version" "external_ids:rundir=$run" "external_ids:hostname=$(hostname)"
	# Not everywhere allowed, and the switch works without. The shell is busybox'.
	# shellcheck disable=SC3045
	if ulimit -l unlimited 2>/dev/null; then
		set -- --mlockall
	else
		set --
	fi
	# As Debian's ovs-ctl does: what waits here are packets.
	nice=
	if nice -n -10 true 2>/dev/null; then
		nice='nice -n -10'
	fi
	# shellcheck disable=SC2086
	exec $nice ovs-vswitchd unix:$run/db.sock --pidfile $log "$@"
	;;
*)
	echo 'usage: openvswitch database|switch' >&2
	exit 2
	;;
esac
