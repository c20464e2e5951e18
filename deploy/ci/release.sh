#!/bin/sh
# Makes a release 0.0.0 for the tests, of what make build clib has built: deploy/ci/release.sh FOLDER.
set -eu
cd "$(dirname "$0")/../.."
name=roced_0.0.0_linux_$(go env GOARCH) # also the folder in the archive, as hack/package has it
mkdir -p "$1/$name/bin" "$1/$name/lib/musl"
cp roced "$1/$name/bin/"
cp clib/libibverbs.so.1 clib/librdmacm.so.1 "$1/$name/lib/"
if [ -d clib/musl ]; then cp clib/musl/lib*.so.1 "$1/$name/lib/musl/"; fi
tar -C "$1" -czf "$1/$name.tar.gz" "$name"
rm -r "${1:?}/$name"
cd "$1"
sha256sum "$name.tar.gz" >SHA256SUMS
