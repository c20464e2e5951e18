// Package record writes the packets of several cards into one pcapng file: of the hosts of a network in memory, which
// come and go. A packet between two hosts is there twice, as it is sent and as it arrives; its comment has the host's
// name and what became of it there.
package record
