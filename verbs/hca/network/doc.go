// Package network is what a card asks of the network that it is on, and of the host around it: small interfaces and
// the types of their answers, and hardly any code. A package that implements them gives cards a network of another
// kind.
//
//	hca ── asks ──► network.Host ◄── implement ── nic      an interface of this host
//	paths ────────► network.Routes                memnet   a host on a network in memory
package network
