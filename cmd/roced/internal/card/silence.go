package card

import "fmt"

// Unanswered is the advice where no packet of so many bytes, with its payload, has reached a peer that exists, or come back.
func Unanswered(bytes int) string {
	return fmt.Sprintf("check that firewalls on both hosts and between them pass UDP port 4791 (nft list ruleset), and that all links carry messages of %d bytes (their MTU)", bytes)
}

// Silence is the advice where no datagram has come since the counters before: packets of another transport service name the
// peer's flag.
func (d *Device) Silence(before []Counter, bytes int) string {
	after, err := d.Counters()
	if err != nil {
		return Unanswered(bytes)
	}
	if Count(Since(before, after), "engine", "drop_unsupported") > 0 {
		return "packets of a connection came: does the peer use one (--rc, ibv_rc_pingpong)? Then add --rc here, or give both sides none"
	}
	return Unanswered(bytes)
}
