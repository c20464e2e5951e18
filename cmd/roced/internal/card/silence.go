// SPDX-License-Identifier: Apache-2.0

package card

import "fmt"

// Unanswered returns the remedy for packets with a payload of this size that did not reach an existing peer, or whose
// responses did not arrive.
func Unanswered(bytes int) string {
	return fmt.Sprintf("check that firewalls on both hosts and between them accept UDP port 4791 (nft list ruleset), and that the MTU of all links is sufficient for messages of %d bytes", bytes)
}

// Silence returns the remedy if no datagram arrived since the counters before were read. Packets of another transport
// service mean that the peer has different flags.
func (d *Device) Silence(before []Counter, bytes int) string {
	after, err := d.Counters()
	if err != nil {
		return Unanswered(bytes)
	}
	if Count(Since(before, after), "engine", "drop_unsupported") > 0 {
		return "packets of a connection arrived: if the peer uses --rc or ibv_rc_pingpong, use --rc on both sides"
	}
	return Unanswered(bytes)
}
