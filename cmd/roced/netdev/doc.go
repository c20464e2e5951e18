// Package netdev is roced netdev: an interface of the host whose IP packets travel over a card, to the other hosts of
// the same network (verbs/netdev).
//
//	command.go ── carry.go   opens card and interface, says so, carries packets until the end, says how many
package netdev
