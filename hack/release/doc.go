// SPDX-License-Identifier: Apache-2.0

// Command release builds a release with one command: make release VERSION=0.1.0 KEY=FINGERPRINT.
//
//	main.go        the command line, the steps
//	checks.go      refuses a missing key, uncommitted changes, a tag on another commit, an undated section
//	notes.go       release notes, from the version's section of CHANGELOG.md
//	repository.go  the repositories of apt and dnf: links to the packages, and the indexes
//	sign.go        signatures, by gpg with the administrator's key
//	install.sh     the test: installs a release in clean roots, without a network
//
// The output folder holds what BASE, the folder on a web server, is to hold:
//
//	0.1.0/         archives, packages, image, SBOMs (by hack/package), NOTES.md, SHA256SUMS, SHA256SUMS.asc
//	apt/           a repository of packages for Debian and its derivatives
//	rpm/           a repository for Fedora and its derivatives
//	roced.asc      the public key
//
// The repositories also list the packages of earlier releases in the folder. Their indexes are made by the distributions'
// own programs, apt-ftparchive and createrepo_c, and signed by gpg, which also keeps keys on smart cards. Packages have
// no signatures, so that every build of a commit makes the same bytes: the signed indexes have their checksums.
package main
