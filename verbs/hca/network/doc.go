// SPDX-License-Identifier: Apache-2.0

// Package network declares the interface between a card and the network that it is on, with the host around it: small
// interfaces and their types, and little code. A package that implements them provides cards on another kind of
// network.
//
//	hca ── calls ─► network.Host ◄── implement ── nic      an interface of this host
//	paths ────────► network.Routes                memnet   a host on an in-memory network
package network
