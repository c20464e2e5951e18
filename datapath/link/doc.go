// SPDX-License-Identifier: Apache-2.0

// Package link implements the port of a card, which receives and sends the engine's frames.
//
//	engine ── Reserve, Commit, Flush ──►  Link  ──► XDP            AF_XDP sockets of an interface, and
//	engine ◄── Receive, Next, Release ──  Link  ◄──                Packets, for bursts (send.go, train.go)
//	                                            ◄─► Port           of a Network: a switch in memory
//	                                            ◄─► udplink.Link   UDP sockets, in a package of its own
//
// The engine owns a Link and calls it under its lease, so a Link needs no lock for these calls. A Port has one lock,
// for the frames that other ports deliver to it. Frames are borrowed: a received frame is valid until the next call of
// Next or Release, a reserved frame until Commit. The losses that a Link counts are reported together with the engine's
// drops, so that the number of sent packets is the sum of delivered packets and named drops.
//
// A Port also accepts the long packets of datapath/conn, unless the network is impaired or packets are captured
// (long.go).
//
// The sockets of an XDP link can be replaced while it is open (sockets.go).
//
// The contents of frames are in package datapath, the filter for received frames in bpf, and the setup of a socket in
// datapath/xsk.
package link
