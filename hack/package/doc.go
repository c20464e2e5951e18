// SPDX-License-Identifier: Apache-2.0

// Command package builds what a release has: go run ./hack/package, or make package and make image.
//
//	main.go       the command line, and a release: what is built, for which processors
//	source.go     the version and the time: the tag's and the commit's
//	stage.go      the binary, manual pages, completions, C libraries; then nfpm, once a format
//	weak.go       C libraries that run with an older glibc too; those for musl need nothing of the kind
//	tarball.go    archives: the same bytes each time
//	sbom.go       what the binary is made of (CycloneDX)
//	image.go      an OCI image for all processors
//	nfpm.yaml     what goes where in the package roced, and what that needs
//	nfpm-verbs.yaml  the same of the C libraries, roced-verbs
//	root/         the units, sysusers.d, tmpfiles.d, documents
//	deb/, rpm/    maintainer scripts
//
// Built twice from one commit, all has the same bytes. Packages are built by nfpm, which go run fetches by its
// version. Neither root nor the distributions' own tools are needed, except make, gcc and musl-gcc; for another processor, its
// own (Debian: gcc-aarch64-linux-gnu, musl-dev:arm64).
package main
