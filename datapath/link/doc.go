// Package link is where an engine's frames come from and go to: the card's port.
//
//	engine ── Reserve, Commit, Flush ──►  Link  ──► XDP    AF_XDP sockets of an interface
//	engine ◄── Receive, Release ────────  Link  ◄── Port   of a Network: a switch in memory
//
// The engine owns a Link and calls it under its lease, so a Link needs no locks but those towards
// others: a port of a Network has one, for what arrives. A frame is
// borrowed: a received one until Release, a reserved one until Commit. What a Link counts is
// shown beside the engine's drops, so that sent = delivered + named drops.
//
// Left out: what frames mean (datapath), which frames come here at all (bpf), how a socket is
// set up (datapath/xsk).
package link
