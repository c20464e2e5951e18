// Package pcapng writes captures that tshark and Wireshark read while they are written: pcapng with one
// Ethernet interface, times in nanoseconds, and for each packet a direction, a comment, and how many
// were lost before it (draft-ietf-opsawg-pcapng). It knows no other packages of roced.
package pcapng
