// Command package builds roced's Debian packages and RPMs, of the command and of the C libraries: go run ./hack/package, or make package.
//
//	main.go      stage: the binary, manual pages, completions; then nfpm, once a format
//	nfpm.yaml    what goes where, and what the packages need
//	nfpm-verbs.yaml  the same of the C libraries, roced-verbs
//	root/        the units, sysusers.d, tmpfiles.d, documents
//	deb/, rpm/   maintainer scripts
//
// The packages are built by nfpm, which go run fetches by its version. Neither root nor the
// distributions' own tools are needed, except gcc and make; for another processor, its gcc.
package main
