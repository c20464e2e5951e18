#!/bin/sh
# Creates a release 0.0.0 for the tests from the files of "make build clib": deploy/ci/release.sh FOLDER.
set -eu
cd "$(dirname "$0")/../.."
name=roced_0.0.0_linux_$(go env GOARCH) # also the folder in the archive, as in hack/package
folder=$1/0.0.0
mkdir -p "$folder/$name/bin" "$folder/$name/lib/musl"
cp roced "$folder/$name/bin/"
cp clib/libibverbs.so.1 clib/librdmacm.so.1 "$folder/$name/lib/"
if [ -d clib/musl ]; then cp clib/musl/lib*.so.1 "$folder/$name/lib/musl/"; fi
tar -C "$folder" -czf "$folder/$name.tar.gz" "$name"
rm -r "${folder:?}/$name"
cd "$folder"
sha256sum "$name.tar.gz" >SHA256SUMS
