// SPDX-License-Identifier: Apache-2.0

// Command guest tests the Debian package in a virtual machine with systemd. "make test-package" runs it.
//
//	main.go    packages of two versions, a client, a machine; the result, a line per check
//	image.go   a disk with Debian 12, built once by mmdebstrap, and copied for each run
//	guest.sh   the checks in the guest, run by a unit: install, reload, use, refuse, kill, namespace; reboot;
//	           upgrade, remove, purge
//	client/    an unprivileged program
//
// It takes about three minutes under emulation, and about as long to build the image the first time, from Debian's
// archive. It requires root and Debian's packages qemu-system-x86, mmdebstrap, e2fsprogs and debian-archive-keyring.
package main
