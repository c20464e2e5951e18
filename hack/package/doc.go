// SPDX-License-Identifier: Apache-2.0

// Command package builds the files of a release: go run ./hack/package, or make package and make image.
//
//	main.go       the command line, and a release: formats and processors
//	source.go     the version from the tag, and the time from the commit
//	stage.go      the binary, manual pages, completions, C libraries; then nfpm, once per format
//	weak.go       support for older glibc versions in the C libraries; not required for musl
//	tarball.go    reproducible archives
//	sbom.go       the components of the binary (CycloneDX)
//	image.go      an OCI image for all processors
//	nfpm.yaml     the files and dependencies of the package roced
//	nfpm-verbs.yaml  the same for the C libraries, package roced-verbs
//	root/         the units, sysusers.d, tmpfiles.d, documents
//	deb/, rpm/    maintainer scripts
//
// Builds are reproducible: the same commit gives the same bytes. nfpm builds the packages. go run fetches it in a
// pinned version. Required tools are make, gcc and musl-gcc and, for another processor, its cross compilers (Debian:
// gcc-aarch64-linux-gnu, musl-dev:arm64). Root and other tools of the distributions are not required.
package main
