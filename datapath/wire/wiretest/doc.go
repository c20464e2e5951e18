// Package wiretest changes RoCEv2 frames for tests: it makes checksum and ICRC right again, so that
// the test's change is the only fault of the frame.
//
//	            IP       UDP   BTH   DETH   Payload
//	┌──────────┬────────┬─────┬─────┬──────┬─────────┬──────┐
//	│ Ethernet │ IPv4   │ UDP │ BTH │ DETH │ payload │ ICRC │
//	└──────────┴────────┴─────┴─────┴──────┴─────────┴──────┘
//
// It does not use package wire, because it tests it. Left out: IPv6, except in Reseal6; VLAN tags.
package wiretest
