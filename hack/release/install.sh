#!/bin/sh
# Installs a release in clean roots with the commands of docs/INSTALL.md, and runs the first measurements of that page.
# Run it as root, by "make test-install".
#   hack/release/install.sh            builds a draft for amd64, signed with a temporary key
#   hack/release/install.sh FOLDER     tests the release in the output folder of make release
# The roots: Debian 12 and 13 with apt, Debian 12 with dnf of this machine, and busybox with the archive. They use their
# own mount, process and network namespaces, without a network. The Debian roots contain curl and perftest.
set -eu
cd "$(dirname "$0")/../.."
kept=${XDG_CACHE_HOME:-$HOME/.cache}/roced/install # archives of the roots
limit=30                                           # maximum seconds from the first command to the first figure

# lines prints the commands of a section of docs/INSTALL.md, for a base URL.
lines() {
	sed -n "/^## $1/,/^## /s/^    //p" docs/INSTALL.md | sed "s|^BASE=.*|BASE=$2|; s|^VERSION=.*|VERSION=$version|"
}

# block prints a block of commands of a section by its number.
block() {
	sed -n "/^## $1/,/^## /p" docs/INSTALL.md |
		awk -v want="$2" '/^    / { if (!in_block) n++; in_block = 1; if (n == want) print substr($0, 5); next } { in_block = 0 }'
}

# debian unpacks a minimal Debian. It creates the archive unless it exists.
debian() {
	if [ ! -f "$kept/$1.tar" ]; then
		mkdir -p "$kept"
		mmdebstrap --quiet --format=tar --variant=minbase --include=curl,perftest --aptopt='Acquire::Languages "none"' "$1" "$kept/$1.new"
		mv "$kept/$1.new" "$kept/$1.tar"
	fi
	tar -C "$root" --exclude='./dev/*' -xf "$kept/$1.tar"
	rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
	echo "127.0.0.1 localhost" >"$root/etc/hosts"
}

# programs creates a root with busybox only. Its curl copies a file.
programs() {
	mkdir -p "$root/bin" "$root/usr/local/bin" "$root/tmp"
	for name in $(busybox --list); do ln -s busybox "$root/bin/$name"; done
	cp --remove-destination "$(command -v busybox)" "$root/bin/busybox"
	printf '#!/bin/sh\ncp "${2#file://}" .\n' >"$root/bin/curl"
	chmod 755 "$root/bin/curl"
}

# byDNF runs the section for dnf outside of the root, which has no dnf. A dummy package represents the root's glibc,
# which dnf does not know.
byDNF() {
	mkdir "$dir/glibc" "$root/etc/yum.repos.d"
	printf 'name: glibc\narch: amd64\nversion: 2.36.0\nmaintainer: test <test@example.org>\ndescription: stand-in\n' >"$dir/glibc/nfpm.yaml"
	GOFLAGS=-mod=mod go run "$(sed -n 's/^const nfpm = "\(.*\)"/\1/p' hack/package/stage.go)" \
		package -f "$dir/glibc/nfpm.yaml" -p rpm -t "$dir/glibc/" >/dev/null
	createrepo_c --quiet "$dir/glibc"
	lines Fedora "file://$release" | sed "
		s|/etc/yum.repos.d|$root&|
		s|^dnf|& --quiet --installroot=$root --releasever=1 --repofrompath=glibc,file://$dir/glibc --setopt=glibc.gpgcheck=0|" |
		unshare --net sh -eux >"$dir/dnf.log" 2>&1 || { cat "$dir/dnf.log"; echo "dnf: failed"; exit 1; }
}

# figure prints the commands that print roced's version and the first figure, and fail without a figure. Its arguments
# are a block of the section and a pattern of the figure's line. The commands wait until perftest's server listens (port
# 18515).
figure() {
	echo "roced version"
	block "The first figure" "$1" | sed "
		s|sleep 1|until cat /proc/net/tcp /proc/net/tcp6 \| grep -q :4853.*.0A.; do sleep 0.1; done|
		s/\$/ | tee said; grep '$2' said/"
}

# inside runs the commands in the root, and reports the time.
inside() {
	for folder in proc sys dev run release; do mkdir -p "$root/$folder"; done
	began=$(date +%s%N)
	unshare --mount --pid --net --fork --kill-child "$0" enter "$root" "$release" >"$dir/log" 2>&1 ||
		{ cat "$dir/log"; echo "$job: failed"; exit 1; }
	took=$((($(date +%s%N) - began) / 1000000))
	grep -q "^roced v$version " "$dir/log" || { cat "$dir/log"; echo "$job: roced version is not v$version"; exit 1; }
	echo "$job: installed, and the first figure printed, in $took ms"
	[ $took -le $((limit * 1000)) ] || { echo "$job: more than $limit s"; exit 1; }
}

case ${1:-} in
enter)
	root=$2
	mount --make-rprivate /
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount -t tmpfs -o mode=755 dev "$root/dev"
	for node in null=1,3 zero=1,5 random=1,8 urandom=1,9; do
		numbers=${node#*=}
		mknod -m 666 "$root/dev/${node%=*}" c "${numbers%,*}" "${numbers#*,}"
	done
	mount --bind -o ro "$3" "$root/release"
	ip link set lo up
	exec chroot "$root" /bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp DEBIAN_FRONTEND=noninteractive \
		sh -c 'cd /tmp; exec sh -eux lines.sh'
	;;
esac

go run ./hack/tools test-install
dir=$(mktemp -d)
trap 'GNUPGHOME=$dir/keys gpgconf --kill gpg-agent; rm -rf --one-file-system "$dir"' EXIT
if [ -n "${1:-}" ]; then
	release=$(realpath "$1")
	version=$(sed -n 's/^Version: //p' "$release/apt/Packages" | sort -V | tail -n 1)
else
	release=$dir/release
	version=$(sed -n 's/^## \([0-9][^ ]*\).*/\1/p' CHANGELOG.md | head -n 1)
	mkdir -m 700 "$dir/keys"
	gpg="gpg --homedir $dir/keys --batch --quiet"
	$gpg --passphrase '' --quick-generate-key 'test <test@example.org>' ed25519 sign never 2>/dev/null
	key=$($gpg --list-keys --with-colons | awk -F: '/^fpr/ { print $10; exit }')
	GNUPGHOME=$dir/keys go run ./hack/release -draft -version "$version" -key "$key" -arch amd64 -output "$release" >"$dir/log" 2>&1 ||
		{ cat "$dir/log"; exit 1; }
fi

for job in "Debian 12, apt" "Debian 13, apt" "Debian 12, dnf" "busybox, archive"; do
	root=$(mktemp -d -p "$dir")
	chmod 755 "$root"
	case $job in
	"Debian 12"*) debian bookworm ;;
	"Debian 13"*) debian trixie ;;
	*) programs ;;
	esac
	case $job in
	*apt) { lines Debian file:///release; figure 1 '^ *65536'; } ;;
	*dnf) byDNF >&2; figure 1 '^ *65536' ;;
	*) { lines Other file:///release; figure 2 '^Everything is removed'; } ;;
	esac >"$root/tmp/lines.sh"
	inside
	rm -rf --one-file-system "$root"
done
