#!/bin/sh
# The checks in the guest. A unit runs this script as root at each boot. /host/stage contains the stage, and
# /host/result gets a line per check. /host also contains v1.deb, v2.deb and client.

check() { # NAME COMMAND...: checks that the command succeeds
	name=$1
	shift
	if out=$("$@" 2>&1); then
		echo "PASS $name" >>/host/result
	else
		echo "FAIL $name: $* exits with $?: $out" >>/host/result
		journalctl -u 'roced*' --no-pager -n 40
		systemctl status --no-pager 'roced*'
	fi
}

refuses() { ! "$@"; }

eventually() { # COMMAND...: retries until the command succeeds, for a minute
	for i in $(seq 120); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.5
	done
	"$@"
}

status_says() { systemctl show -p StatusText "${2:-roced}" | grep -q "$1"; }
as_member() { setpriv --reuid 4242 --regid 4242 --groups "$(getent group roced | cut -d: -f3)" "$@"; }
as_other() { setpriv --reuid 4243 --regid 4243 --clear-groups "$@"; }
use() { as_member /usr/local/bin/client /run/roced/roced.sock roce0; }
exists() { ip link add roce0 type veth peer name peer0 && ip link set peer0 up && ip link set roce0 up && ip address add 10.77.0.1/24 dev roce0; }

cp /host/client /usr/local/bin/client
case $(cat /host/stage 2>/dev/null) in
'')
	check "installs" dpkg -i /host/v1.deb
	check "runs without a device" eventually status_says "no device"
	check "units are valid" systemd-analyze verify --man=no /lib/systemd/system/roced.service /lib/systemd/system/roced.socket
	check "reload refuses an invalid configuration" sh -c 'echo nonsense = 1 >>/etc/roced/roced.toml; ! systemctl reload roced'
	printf '[[device]]\ninterface = "roce0"\n' >/etc/roced/roced.toml
	check "reload" systemctl reload roced
	check "waits for the interface" eventually status_says "no interface"
	check "the interface is created" exists
	check "serves the device" eventually status_says "roce0 active, 10.77.0.1"
	check "a member of the group uses it" use
	check "others are refused" refuses as_other /usr/local/bin/client /run/roced/roced.sock roce0
	check "does not run as root" sh -c 'test "$(ps -o user= -p "$(systemctl show -p MainPID --value roced)")" = roced'
	check "the interface is deleted" ip link del roce0
	check "reports the missing interface" eventually status_says "no interface"
	check "the interface is created again" exists
	check "serves again" eventually use
	check "is killed" sh -c 'kill -9 "$(systemctl show -p MainPID --value roced)"'
	check "restarts automatically" eventually use
	check "a namespace is created" sh -c 'ip netns add red && ip link add roce1 netns red type veth peer name peer1 && ip link set peer1 up && ip -n red link set roce1 up && ip -n red address add 10.78.0.1/24 dev roce1'
	printf '[socket]\ngroup = "roced"\n[[device]]\ninterface = "roce1"\n' >/etc/roced/red.toml
	check "a service starts in the namespace" systemctl start roced@red
	check "serves in the namespace" as_member /usr/local/bin/client /run/roced/red.sock roce1
	check "stops" systemctl stop roced@red
	rm /etc/roced/red.toml
	check "manual" sh -c 'zcat /usr/share/man/man8/roced.8.gz | grep -q "THE SERVICE"'
	echo rebooted >/host/stage
	sync
	systemctl reboot
	;;
rebooted)
	check "runs after a reboot" eventually systemctl is-active roced
	check "the interface is created after the reboot" exists
	check "serves after a reboot" eventually use
	check "the configuration is unchanged" grep -q roce0 /etc/roced/roced.toml
	before=$(systemctl show -p MainPID --value roced)
	check "upgrade" dpkg -i --force-confold /host/v2.deb
	check "serves after the upgrade" eventually use
	check "the upgrade restarted the service" test "$before" != "$(systemctl show -p MainPID --value roced)"
	check "the upgrade keeps the configuration" grep -q roce0 /etc/roced/roced.toml
	check "is still enabled" systemctl is-enabled roced.service roced.socket
	check "is removed" dpkg -r roced
	check "does not run" refuses systemctl is-active roced.service roced.socket
	check "no XDP program is left" sh -c '! ip link show roce0 | grep -q xdp'
	check "the configuration remains" test -f /etc/roced/roced.toml
	check "installs again" dpkg -i /host/v2.deb
	check "serves again, with its configuration" eventually use
	check "is purged" dpkg -P roced
	check "no files are left" sh -c 'left=$(find / -xdev \( -path /proc -o -path /sys -o -path /host -o -path /var/log -o -path /tmp \) -prune -o \( -name "roced*" -o -name "_roced*" \) -print; ls -d /run/roced 2>/dev/null); echo "$left"; test -z "$left"'
	echo end >>/host/result
	sync
	systemctl poweroff
	;;
esac
