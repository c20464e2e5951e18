// SPDX-License-Identifier: Apache-2.0

// Package pcapng writes captures that tshark and Wireshark can read while they are written: pcapng with one
// Ethernet interface, times in nanoseconds, and for each packet a direction, a comment and the number of
// packets lost before it (draft-ietf-opsawg-pcapng). It imports no other packages of roced.
package pcapng
