// SPDX-License-Identifier: Apache-2.0

// Package netdev implements roced netdev: a network interface whose IP packets travel over a card to the other hosts
// of the same network (verbs/netdev).
//
//	command.go ── carry.go   opens card and interface, carries packets until the end, prints the totals
package netdev
