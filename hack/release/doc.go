// SPDX-License-Identifier: Apache-2.0

// Command release builds a release with one command: make release VERSION=0.1.0 KEY=FINGERPRINT.
//
//	main.go        the command line, the steps
//	checks.go      checks for a missing key, uncommitted changes, a tag on another commit, an undated section
//	notes.go       release notes, from the version's section of CHANGELOG.md
//	repository.go  the repositories of apt and dnf: links to the packages, and the indexes
//	sign.go        signatures by gpg with the administrator's key
//	install.sh     the test: installs a release in clean roots, without a network
//
// The output folder is to be copied to BASE, the folder on a web server:
//
//	0.1.0/         archives, packages, image, SBOMs (by hack/package), NOTES.md, SHA256SUMS, SHA256SUMS.asc
//	apt/           a repository of packages for Debian and its derivatives
//	rpm/           a repository for Fedora and its derivatives
//	roced.asc      the public key
//
// The repositories also list the packages of earlier releases in the folder. The distributions' programs apt-ftparchive
// and createrepo_c create the indexes, and gpg signs them, also with keys on smart cards. Packages have no signatures,
// so that builds are reproducible. The signed indexes contain their checksums.
package main
