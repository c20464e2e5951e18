// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// message is the output for a received message.
type message struct {
	From      string  `json:"from"`
	QPN       uint32  `json:"qpn"`
	Size      int     `json:"size"` // bytes of payload
	GID       string  `json:"gid"`  // destination
	Immediate *uint32 `json:"immediate,omitempty"`
}

// joined is the output after joining.
type joined struct {
	Group     string `json:"group"`
	MGID      string `json:"mgid"`
	MAC       string `json:"mac"`
	Member    string `json:"member"` // full or send-only
	card.Side        // the address is empty if the interface has none of the group's IP version
	QPN       uint32 `json:"qpn"`
	QKey      uint32 `json:"qkey"`
	send      bool
}

// totals is the output at the end.
type totals struct {
	Group    string            `json:"group"`
	Sent     uint64            `json:"sent"`
	Size     int               `json:"sent_size"` // bytes of payload, each
	Received uint64            `json:"received"`
	Own      uint64            `json:"received_own"`   // of Received: sent by the program itself
	Bytes    uint64            `json:"received_bytes"` // of payload
	Drops    map[string]uint64 `json:"drops"`          // by place and name
	Link     map[string]uint64 `json:"link_drops"`     // counted by the interface, possibly including drops
}

// newMessage describes a received message.
func newMessage(m *ud.Message) message {
	t := message{From: m.From.IP().String(), QPN: uint32(m.From.QPN), Size: len(m.Data), GID: m.To.GID.String()}
	if m.HasImm {
		t.Immediate = &m.Imm
	}
	return t
}

func (t message) String() string {
	immediate := "no immediate data"
	if t.Immediate != nil {
		immediate = fmt.Sprintf("immediate data 0x%08x", *t.Immediate)
	}
	return fmt.Sprintf("%s QP %v: %d bytes to %s, %s", t.From, verbs.QPN(t.QPN), t.Size, t.GID, immediate)
}

// String returns the text form.
func (s *joined) String() string {
	doing := "listening"
	if s.send {
		doing = fmt.Sprintf("sending from %s, as a %s member,", s.Address, s.Member)
	}
	return fmt.Sprintf("%s to group %s (MGID %s, MAC %s)\n%s: QP %v, Q_Key %v, RDMA MTU %d, %s",
		doing, s.Group, s.MGID, s.MAC, s.Device, verbs.QPN(s.QPN), verbs.QKey(s.QKey), s.MTU, cli.Way(s.XDP, s.AFXDP))
}

// String returns the text form.
func (s *totals) String() string {
	var lines []string
	if s.Sent > 0 {
		lines = append(lines, fmt.Sprintf("sent %s of %d bytes", cli.Several(s.Sent, "message"), s.Size))
	}
	if s.Received > 0 || s.Sent == 0 {
		line := fmt.Sprintf("received %s, %s bytes of payload", cli.Several(s.Received, "message"), cli.Grouped(s.Bytes))
		if s.Own > 0 {
			line += fmt.Sprintf(", %s of them own messages", cli.Grouped(s.Own))
		}
		lines = append(lines, line)
	}
	lines = append(lines, "dropped: "+cmp.Or(cli.List(s.Drops), "none"))
	if s.Received == 0 && s.Sent == 0 && len(s.Drops) == 0 {
		lines = append(lines, `nothing received: see "Nothing received?" in roced mcast --help`)
	}
	for _, h := range dropHints {
		if s.Drops[h.drop] > 0 {
			lines = append(lines, h.text)
		}
	}
	return strings.Join(lines, "\n")
}

// dropHints gives the remedies for avoidable drops.
var dropHints = []struct{ drop, text string }{
	{"engine drop_qkey", "drop_qkey: a sender uses another Q_Key; that of perftest is --qkey 0x11111111"},
	{"engine drop_own_source", "drop_own_source: over UDP sockets the kernel returns a member's own messages, which were delivered already"},
	{"engine drop_no_receive", "drop_no_receive: messages arrived faster than this program received them; --quiet makes it faster"},
}
