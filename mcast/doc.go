// Package mcast holds the rules of multicast: how groups are named, and who is attached to them.
// It knows neither host nor wire.
//
//	IP address ◄──► MGID ──► MAC                      mgid.go
//
//	attach ──► Table: MGID, MLID ──► queue pairs      groups.go    who receives here
//	             │ QPs, replaced never changed
//	             ▼
//	           the engine, between two bursts
//
// A Table has rdmavt's rules and return values, and no lock: the card's control plane calls
// it under its own. An attach makes the host no member of the group, as in the kernel: that is
// mcast/membership, which knows nothing of this package.
//
// Left out: memberships, source-specific groups, multicast routing.
package mcast
