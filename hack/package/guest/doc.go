// SPDX-License-Identifier: Apache-2.0

// Command guest tests the Debian package in a virtual machine with a real systemd: make test-package.
//
//	main.go    packages of two versions, a client, a machine; the result, a line a check
//	image.go   Debian 12 on a disk, by mmdebstrap; made once, and copied for each run
//	guest.sh   what is done inside, by a unit: install, reload, use, refuse, kill, namespace; reboot;
//	           upgrade, remove, purge
//	client/    a program without privileges
//
// It takes about three minutes under emulation, and as long again to make the image the first time.
// The image is from Debian's archive. It needs root and Debian's packages qemu-system-x86, mmdebstrap,
// e2fsprogs and debian-archive-keyring.
package main
