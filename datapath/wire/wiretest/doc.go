// SPDX-License-Identifier: Apache-2.0

// Package wiretest modifies RoCEv2 frames for tests: it corrects the checksum and the ICRC, so that the test's change
// is the only fault of the frame.
//
//	            IP       UDP   BTH   DETH   Payload
//	┌──────────┬────────┬─────┬─────┬──────┬─────────┬──────┐
//	│ Ethernet │ IPv4   │ UDP │ BTH │ DETH │ payload │ ICRC │
//	└──────────┴────────┴─────┴─────┴──────┴─────────┴──────┘
//
// It does not use package wire, so that the tests of package wire are independent of it. IPv6 is supported only in
// Reseal6; VLAN tags are not supported.
package wiretest
