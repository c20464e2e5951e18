// Package wiretest changes RoCEv2 frames for tests: one thing becomes wrong, and the
// sums over it right again.
//
//	            IP       UDP   BTH   DETH   Payload
//	┌──────────┬────────┬─────┬─────┬──────┬─────────┬──────┐
//	│ Ethernet │ IPv4   │ UDP │ BTH │ DETH │ payload │ ICRC │
//	└──────────┴────────┴─────┴─────┴──────┴─────────┴──────┘
//
// It does without package wire, which it judges. Left out: IPv6, but for Reseal6; VLAN tags.
package wiretest
