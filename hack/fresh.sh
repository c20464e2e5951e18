#!/bin/sh
# Runs the README's two commands where Go is the only tool. Run it as root, by "make fresh". Each job can run alone:
#   hack/fresh.sh root      as root in a minimal Debian
#   hack/fresh.sh chroot    the same where / is not a mount point, the most restrictive environment of root
#   hack/fresh.sh user      as an ordinary user in a minimal Debian
#   hack/fresh.sh here      as an ordinary user on this machine, with its tools
#   hack/fresh.sh debian    only creates the archive of the minimal Debian
# A job fails if a command fails, or if a test is skipped for another reason than a missing tool or privilege. A file
# lists the tests that root or chroot skipped, for .ci/run. Jobs run in their own namespaces without a network.
set -eu
cd "$(dirname "$0")/.."
kept=${XDG_CACHE_HOME:-$HOME/.cache}/roced/fresh # the archive, the jobs' folders and the lists
user=65534                                      # nobody

# commands prints the README's commands, one per line.
commands() {
	sed -n 's/^    \(go run \.\/cmd\/roced demo\|go test \.\/\.\.\.\)\( *#.*\)\{0,1\}$/\1/p' README.md
}

# debian creates the archive of a minimal Debian, unless it exists.
debian() {
	[ ! -f "$kept/debian.tar" ] || return 0
	mmdebstrap --quiet --format=tar --variant=minbase bookworm "$kept/debian.tar.$$"
	mv "$kept/debian.tar.$$" "$kept/debian.tar"
}

# copy creates a build cache that the ordinary user can write to: outputs are hard links, and the index is copied.
copy() {
	cp -al "$1" "$2"
	find "$2" -name '*-a' -delete
	(cd "$1" && find . -name '*-a' -print0 | tar -c --null -T -) | tar -x -C "$2"
	find "$2" \( -type d -o -name '*-a' \) -exec chown $user:$user {} +
}

# prepare fills the job's folder with the checkout and, for an ordinary user, a build cache.
prepare() {
	if [ "$job" != here ]; then
		debian
		tar -C "$root" --exclude='./dev/*' -xf "$kept/debian.tar"
	fi
	for folder in roced modules toolchain cache; do mkdir -p "$root/home/$folder"; done
	git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$root/home/roced"
	cache=$(go env GOCACHE)
	case $job in
	user | here)
		copy "$cache" "$dir/cache"
		cache=$dir/cache
		chown -R $user:$user "$root/home"
		;;
	esac
	go mod download
}

# mounts mounts what a container engine mounts, and the Go toolchain with its caches.
mounts() {
	mount --make-rprivate /
	case $job in root | user) mount --bind "$root" "$root" ;; esac
	mount --bind -o ro "$(go env GOROOT)" "$root/home/toolchain"
	mount --bind -o ro "$(go env GOMODCACHE)" "$root/home/modules"
	mount --bind "$cache" "$root/home/cache"
	if [ "$job" = here ]; then
		mount -t proc proc /proc
		return
	fi
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount -t tmpfs -o mode=755 dev "$root/dev"
	for node in null=1,3 zero=1,5 full=1,7 random=1,8 urandom=1,9 tty=5,0; do
		numbers=${node#*=}
		mknod -m 666 "$root/dev/${node%=*}" c "${numbers%,*}" "${numbers#*,}"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
}

# enter starts the job in its root directory, as its user.
enter() {
	cd "$root"
	case $job in root | user) mount --move . / ;; esac
	home=/home
	[ "$job" != here ] || home=$root/home
	set -- env -i job="$job" ROCED_ROUNDS="${ROCED_ROUNDS:-}" PATH="$home/toolchain/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME="$home" \
		GOCACHE="$home/cache" GOMODCACHE="$home/modules" GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 \
		sh -eu "$home/roced/hack/fresh.sh" commands
	case $job in
	here) exec setpriv --reuid=$user --regid=$user --clear-groups "$@" ;;
	user) exec chroot --userspec=$user:$user . "$@" ;;
	*) exec chroot . "$@" ;;
	esac
}

# perform runs one of the README's commands. It does not vet the tests, since "make lint" does.
perform() {
	said=$(mktemp)
	case $1 in
	"go test"*) export GOFLAGS="-trimpath -count=1 -v -vet=off -timeout=20m" ;;
	*) export GOFLAGS=-trimpath ;;
	esac
	if ! sh -c "$1" >"$said" 2>&1; then
		grep -B 40 -A 5 -E '^ *--- FAIL|^FAIL[[:space:]]|^(panic|fatal error): ' "$said" | tail -n 400
		tail -n 20 "$said"
		echo "$job: failed: $1"
		exit 1
	fi
	case $1 in
	"go test"*) check "$said" ;;
	*) grep -q '^Everything is removed' "$said" || { cat "$said"; exit 1; } ;;
	esac
	echo "$job: passed: $1"
}

# check reads the output of go test -v. It prints the reasons for skipped tests, fails if a test has none, and writes
# the list of skipped tests with a package and its tests per line.
check() {
	awk -v list="$HOME/skipped" '
	/^=== / { now = $3 }
	/^ +[A-Za-z0-9_]+\.go:[0-9]+: needs / { reason[now] = $0; sub(/^[^:]*:[0-9]+: /, "", reason[now]) }
	/^ *--- PASS/ { passed++ }
	/^ *--- SKIP/ {
		skipped++
		count[reason[$3]]++
		if (!($3 in reason)) { bad = 1; print "skipped without naming a missing tool or privilege: " $3 }
		test = $3
		sub(/\/.*/, "", test)
		if (!(test in listed)) tests = tests (tests == "" ? "" : "|") test
		listed[test]
	}
	/^ok/ {
		if (tests != "") print $2, tests >list
		tests = ""
		split("", reason)
		split("", listed)
	}
	END {
		for (text in count) printf "%5d %s\n", count[text], text
		printf "%d passed, %d skipped\n", passed, skipped
		exit bad || !passed
	}' "$1"
}

case ${1:-} in
'') for job in root chroot user here; do "$0" "$job"; done ;;
debian)
	mkdir -p "$kept"
	debian
	;;
root | chroot | user | here)
	job=$1
	go run ./hack/tools fresh
	mkdir -p "$kept"
	rm -f "$kept/skipped-$job"
	dir=$(mktemp -d -p "$kept") root=$dir/root
	[ "$job" != here ] || root=$(mktemp -d) # other users can enter it
	trap 'rm -rf --one-file-system "$dir" "$root"' EXIT
	mkdir -p -m 755 "$root"
	chmod 755 "$root"
	prepare
	export job dir root cache
	unshare --mount --pid --net --ipc --fork --kill-child "$0" inside
	[ ! -f "$root/home/skipped" ] || mv "$root/home/skipped" "$kept/skipped-$job"
	;;
inside)
	mounts
	ip link set lo up
	enter
	;;
commands)
	[ "$(commands | wc -l)" = 2 ] || { echo "README.md no longer contains these two commands: $(commands)"; exit 1; }
	commands | while read -r command; do perform "$command"; done
	;;
*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
