#!/bin/bash
# build.sh - build a kernel + root image for a throw-away Soft-RoCE VM.
#
# Everything comes from Debian packages: they are downloaded with the
# ordinary apt client into a private cache and only *unpacked* (never
# installed), so neither this machine's kernel nor its package database
# changes.  The result is two files that QEMU boots directly:
#
#   $OUT/vmlinux      the kernel, already decompressed (saves the slow in-guest
#                     decompression under TCG; amd64 boots it through PVH)
#   $OUT/root.cpio    the whole root file system as an initramfs
#   $OUT/manifest     versions of everything that went in
#   $OUT/qemu         with -k newest: the emulator of Debian 12's backports
#
# usage: build.sh [-k KERNEL] [-o OUTDIR] [-c CACHEDIR]
#                       [-p "extra debian packages"] [-m "extra modules"]
#
# KERNEL is stable, backports or newest for amd64; arm64-stable or arm64-backports-16k
# for arm64.
#
# Needs (Debian 12, as root):
#   apt-get install --no-install-recommends cpio kmod xz-utils zstd python3 \
#       debian-archive-keyring        (and qemu-system-x86 iproute2 to run it)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
flavour=stable
cache=${ROCED_INTEROP_CACHE:-/var/tmp/roced-interop/cache}
out=
extra_pkgs=
extra_mods=
while getopts k:o:c:p:m: o; do
    case $o in
    k) flavour=$OPTARG ;;
    o) out=$OPTARG ;;
    c) cache=$OPTARG ;;
    p) extra_pkgs=$OPTARG ;;
    m) extra_mods=$OPTARG ;;
    *) exit 2 ;;
    esac
done
arch=amd64 image=linux-image-amd64 multiarch=x86_64-linux-gnu
case $flavour in
arm64-*) arch=arm64 image=linux-image-arm64 multiarch=aarch64-linux-gnu ;;
esac
case $flavour in
*-16k) image+=-16k ;;
esac
case $flavour in
stable|arm64-stable) release=() ;;                            # 6.1, incl. security updates
backports|arm64-backports-16k) release=(-t bookworm-backports) ;;       # 6.12
newest)    release=(-t trixie-backports) ;;         # the newest that Debian has for a release; its user space is Debian 12's
*) echo "unknown kernel flavour $flavour" >&2; exit 2 ;;
esac
out=${out:-/var/tmp/roced-interop/image-$flavour}
# The archive that this machine's own apt uses.
site() { apt-get indextargets --format '$(SITE)|$(RELEASE)' | awk -F'|' -v r="$1" '$2 == r { print $1; exit }'; }
mirror=${MIRROR:-$(site bookworm)}
secmirror=${SECURITY_MIRROR:-$(site bookworm-security)}
[ -n "$mirror" ] && [ -n "$secmirror" ] || { echo "no Debian bookworm archive among apt's sources (run apt-get update?)" >&2; exit 1; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

for t in apt-get dpkg-deb cpio depmod xz tar python3; do
    command -v "$t" >/dev/null || { echo "missing tool: $t" >&2; exit 1; }
done

# What the guest's user space is made of.  dash is /bin/sh: Debian's busybox shell
# would prefer its own applets to real programs such as iproute2's ip.
pkgs="busybox-static dash libc-bin kmod iproute2 ethtool tcpdump iputils-ping strace
      rdma-core ibverbs-providers ibverbs-utils rdmacm-utils perftest
      python3-minimal python3-pyverbs $extra_pkgs"

# Kernel modules (dependencies are added below).  crc32_generic is what rxe
# asks the crypto layer for; sch_netem is there to inject loss/reordering, sch_tbf to limit a rate.
mods="virtio_pci virtio_net virtio_console 9p 9pnet_virtio
      rdma_rxe ib_uverbs rdma_ucm ib_umad crc32_generic
      veth dummy bridge 8021q macvlan ipvlan bonding team tun sch_netem sch_tbf $extra_mods"
if [ "$flavour" = newest ]; then mods="$mods igb"; fi

# Packages the dependency closure drags in but a guest without package
# management, logins or perl does not need.
skip='^(perl|perl-base|perl-modules-5.36|libperl5.36|lib.*-perl|libgdbm.*|udev|
dpkg|tar|adduser|passwd|debconf|usrmerge|init-system-helpers|sysvinit-utils|
lsb-base|pci\.ids|libpam.*|libsemanage.*|libsepol2|libaudit.*|media-types|
mawk|debianutils|base-files|gcc-12-base|libsqlite3-0|libdb5.3-unused)$'
skip=$(tr -d '\n' <<<"$skip")

# ---- private apt: own sources, own lists, an empty dpkg status -------------
apt=$cache/apt
[ "$arch" = amd64 ] || apt=$cache/apt-$arch
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/none"
: >"$apt/status"; : >"$apt/extended_states"
cat >"$apt/sources.list" <<S
deb [signed-by=$keyring] $mirror bookworm main
deb [signed-by=$keyring] $mirror bookworm-updates main
deb [signed-by=$keyring] $mirror bookworm-backports main
deb [signed-by=$keyring] $secmirror bookworm-security main
S
if [ "$flavour" = newest ]; then
    echo "deb [signed-by=$keyring] $mirror trixie-backports main" >>"$apt/sources.list"
fi
aptopts=(-qq
    -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::Etc::preferencesparts=$apt/none" -o "Dir::Etc::preferences=$apt/none/x"
    -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status"
    -o "Dir::State::extended_states=$apt/extended_states"
    -o "Dir::Cache=$apt" -o Dir::Cache::archives=archives/
    -o APT::Sandbox::User=root -o Debug::NoLocking=1
    -o "APT::Architecture=$arch" -o "APT::Architectures::=$arch")
echo "[1/5] package lists"
apt-get "${aptopts[@]}" update

echo "[2/5] downloading kernel ($flavour) and user space"
# linux-image-ARCH is the full kernel; the -cloud- one has no rdma_rxe.
kpkg=$(apt-cache "${aptopts[@]}" "${release[@]}" show --no-all-versions "$image" |
       sed -n 's/^Depends: *//p' | grep -oE 'linux-image-[0-9][^ ,(]*' | head -1 || true)
[ -n "$kpkg" ] || { echo "no kernel package found for $flavour" >&2; exit 1; }
krel=${kpkg#linux-image-}
# From 6.19.14 on the image package is empty, and its kernel and modules are in three others.
kpkgs=$(apt-cache "${aptopts[@]}" "${release[@]}" show --no-all-versions "$kpkg" |
        sed -n 's/^Depends: *//p' | grep -oE 'linux-(binary|modules|base)-[0-9][^ ,(]*' | sort -u || true)
kpkgs=${kpkgs:-$kpkg}
# shellcheck disable=SC2086
(cd "$apt/archives" && apt-get "${aptopts[@]}" "${release[@]}" download $kpkgs)
# Name the exact set instead of globbing the cache (it may hold old files);
# --print-uris leaves out what is cached already, hence the empty archive.
mkdir -p "$apt/empty/partial"
# shellcheck disable=SC2086
mapfile -t uris < <(apt-get "${aptopts[@]}" -o "Dir::Cache::archives=$apt/empty/" \
    -y --no-install-recommends --print-uris install $pkgs | awk '{print $2}')
# Cards with AF_XDP zero-copy beside virtio_net's need an emulator that is newer than Debian 12's.
qemu=
if [ "$flavour" = newest ]; then
    qemu="qemu-system-x86 qemu-system-common qemu-system-data"
    # shellcheck disable=SC2086
    (cd "$apt/archives" && apt-get "${aptopts[@]}" -t bookworm-backports download $qemu)
fi
[ ${#uris[@]} -gt 0 ] || { echo "package resolution failed" >&2; exit 1; }
# shellcheck disable=SC2086
apt-get "${aptopts[@]}" -y --no-install-recommends --download-only install $pkgs >/dev/null

# ---- unpack -----------------------------------------------------------------
echo "[3/5] unpacking $krel and ${#uris[@]} packages"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$work/kernel" "$root"/usr/{bin,sbin,lib,lib64} \
    "$root"/{proc,sys,dev,run,tmp,root,host,etc,var}
for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done   # merged /usr
ln -s /run "$root/var/run"

: >"$work/manifest"
for k in $kpkgs; do
    kdeb=$(ls -t "$apt/archives/${k}"_*.deb | head -1)
    dpkg-deb --fsys-tarfile "$kdeb" | tar -x -C "$work/kernel"
    echo "kernel $(dpkg-deb -f "$kdeb" Package Version | tr '\n' ' ')" >>"$work/manifest"
done
[ -e "$work/kernel/lib" ] || ln -s usr/lib "$work/kernel/lib"
vmlinuz=$work/kernel/boot/vmlinuz-$krel config=$work/kernel/boot/config-$krel
if [ ! -e "$vmlinuz" ]; then
    vmlinuz=$work/kernel/lib/modules/$krel/vmlinuz config=$work/kernel/lib/modules/$krel/config
fi
for f in "${uris[@]}"; do
    deb=$apt/archives/$f
    name=${f%%_*}
    if [[ $name =~ $skip ]]; then continue; fi
    dpkg-deb --fsys-tarfile "$deb" |
        tar -x -C "$root" --keep-directory-symlink --no-same-owner \
            --exclude='./usr/share/doc*' --exclude='./usr/share/man*' \
            --exclude='./usr/share/locale*' --exclude='./usr/share/info*' \
            --exclude='./usr/share/lintian*' --exclude='./usr/share/bash-completion*' \
            --exclude='./usr/lib/'$multiarch'/gconv*' \
            --exclude='./usr/lib/python3*/test*' --exclude='*/__pycache__'
    echo "$f" >>"$work/manifest"
done
rm -rf "$out/qemu"
for q in $qemu; do
    qdeb=$(ls -t "$apt/archives/${q}"_*.deb | head -1)
    mkdir -p "$out/qemu"
    dpkg-deb --fsys-tarfile "$qdeb" | tar -x -C "$out/qemu" --no-same-owner
    echo "emulator $(dpkg-deb -f "$qdeb" Package Version | tr '\n' ' ')" >>"$work/manifest"
done
if [ -n "$qemu" ] && ldd "$out/qemu/usr/bin/qemu-system-x86_64" | grep "not found" >&2; then
    echo "libraries of the emulator are missing: apt-get install qemu-system-x86" >&2
    exit 1
fi

# ---- modules and configuration ----------------------------------------------
echo "[4/5] modules and configuration"
depmod -b "$work/kernel" "$krel"
mkdir -p "$root/lib/modules/$krel"
cp "$work/kernel/lib/modules/$krel"/modules.{order,builtin,builtin.modinfo} \
   "$root/lib/modules/$krel/" 2>/dev/null || true
# Transitive closure over modules.dep, by module name.
python3 - "$work/kernel/lib/modules/$krel" "$root/lib/modules/$krel" $mods <<'PY'
import os, re, shutil, sys
src, dst, want = sys.argv[1], sys.argv[2], sys.argv[3:]
deps, byname, builtin = {}, {}, set()
def name(p):
    return re.sub(r'\.ko(\.\w+)?$', '', os.path.basename(p)).replace('-', '_')
for line in open(f'{src}/modules.dep'):
    path, _, rest = line.partition(':')
    deps[path] = rest.split()
    byname[name(path)] = path
for line in open(f'{src}/modules.builtin'):
    builtin.add(name(line.strip()))
done = set()
for m in want:
    m = m.replace('-', '_')
    if m in builtin:
        continue
    if m == 'crc32_generic' and m not in byname:
        continue                   # a library of the kernel's from 6.16 on
    if m not in byname:
        sys.exit(f'kernel has no module {m}')
    for p in [byname[m]] + deps[byname[m]]:   # modules.dep is already transitive
        if p not in done:
            done.add(p)
            os.makedirs(os.path.dirname(f'{dst}/{p}'), exist_ok=True)
            shutil.copy(f'{src}/{p}', f'{dst}/{p}')
print(f'      {len(done)} modules')
PY
# Decompress modules once here rather than on every boot.
find "$root/lib/modules" -name '*.ko.xz' -exec xz -d {} +
depmod -b "$root" "$krel"

install -m 755 "$here/guest/init" "$root/init"
install -m 755 "$here/guest/vm-agent" "$root/usr/sbin/vm-agent"
install -m 755 "$here/guest/ud" "$root/usr/bin/ud"
echo peer >"$root/etc/hostname"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
chmod 1777 "$root/tmp"
printf 'root:x:0:0:root:/root:/bin/sh\ntcpdump:x:100:100::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\ntcpdump:x:100:\nnogroup:x:65534:\n' >"$root/etc/group"
printf 'passwd: files\ngroup: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
cp "$config" "$root/etc/kernel-config" 2>/dev/null || true
# Another architecture's libraries are all in the loader's default folders.
[ "$arch" != amd64 ] || ldconfig -r "$root"

# ---- pack -------------------------------------------------------------------
echo "[5/5] packing"
mkdir -p "$out"
python3 - "$vmlinuz" "$out/vmlinux" <<'PY'
# The kernel without its compression. amd64: bzImage -> ELF vmlinux, the setup header says
# where the payload lies. arm64: an Image, as it is or within an EFI zboot image.
import lzma, struct, subprocess, sys, zlib
b = open(sys.argv[1], 'rb').read()
def decompress(p, size):
    if p[:6] == b'\xfd7zXZ\0':
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(p)
    if p[:4] == b'\x28\xb5\x2f\xfd':
        return subprocess.run(['zstd', '-dcq'], input=p[:size], stdout=subprocess.PIPE, check=True).stdout
    if p[:2] == b'\x1f\x8b':
        return zlib.decompressobj(31).decompress(p)
    sys.exit('unknown kernel compression ' + p[:6].hex())
if b[0x202:0x206] == b'HdrS':
    setup = (b[0x1f1] or 4) * 512 + 512
    off, length = struct.unpack_from('<II', b, 0x248)
    kernel = decompress(b[setup + off:setup + off + length], -4)
    assert kernel[:4] == b'\x7fELF'
else:
    kernel = b
    if b[4:8] == b'zimg':
        off, length = struct.unpack_from('<II', b, 8)
        kernel = decompress(b[off:off + length], length)
    assert kernel[56:60] == b'ARMd', 'not a kernel image'
open(sys.argv[2], 'wb').write(kernel)
PY
cp "$vmlinuz" "$out/vmlinuz"
(cd "$root" && find . -print0 | LC_ALL=C sort -z |
    cpio --null -o -H newc --owner 0:0 --quiet --reproducible) >"$out/root.cpio"
sort "$work/manifest" >"$out/manifest"
echo "$krel" >"$out/kernel-release"
ls -l "$out"
