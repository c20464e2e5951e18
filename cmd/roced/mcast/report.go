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

// message is what mcast prints about a received message.
type message struct {
	From      string  `json:"from"`
	QPN       uint32  `json:"qpn"`
	Size      int     `json:"size"` // bytes of payload
	GID       string  `json:"gid"`  // that it was sent to
	Immediate *uint32 `json:"immediate,omitempty"`
}

// joined is what mcast prints when it is a member.
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

// totals is what mcast prints at the end.
type totals struct {
	Group    string            `json:"group"`
	Sent     uint64            `json:"sent"`
	Size     int               `json:"sent_size"` // bytes of payload, each
	Received uint64            `json:"received"`
	Own      uint64            `json:"received_own"`   // of Received: sent by the program itself
	Bytes    uint64            `json:"received_bytes"` // of payload
	Drops    map[string]uint64 `json:"drops"`          // by place and name
	Link     map[string]uint64 `json:"link_drops"`     // what the interface counted, which may repeat them
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

// String is for people.
func (s *joined) String() string {
	doing := "listening"
	if s.send {
		doing = fmt.Sprintf("sending from %s, as a %s member,", s.Address, s.Member)
	}
	return fmt.Sprintf("%s to group %s (MGID %s, MAC %s)\n%s: QP %v, Q_Key %v, RDMA MTU %d, %s",
		doing, s.Group, s.MGID, s.MAC, s.Device, verbs.QPN(s.QPN), verbs.QKey(s.QKey), s.MTU, cli.Way(s.XDP, s.AFXDP))
}

// String is for people.
func (s *totals) String() string {
	var lines []string
	if s.Sent > 0 {
		lines = append(lines, fmt.Sprintf("sent %s of %d bytes", cli.Several(s.Sent, "message"), s.Size))
	}
	if s.Received > 0 || s.Sent == 0 {
		line := fmt.Sprintf("received %s, %s bytes of payload", cli.Several(s.Received, "message"), cli.Grouped(s.Bytes))
		if s.Own > 0 {
			line += fmt.Sprintf(", %s of them its own", cli.Grouped(s.Own))
		}
		lines = append(lines, line)
	}
	lines = append(lines, "dropped: "+cmp.Or(cli.List(s.Drops), "none"))
	if s.Received == 0 && s.Sent == 0 && len(s.Drops) == 0 {
		lines = append(lines, `nothing came: see "Nothing comes?" in roced mcast --help`)
	}
	for _, h := range dropHints {
		if s.Drops[h.drop] > 0 {
			lines = append(lines, h.text)
		}
	}
	return strings.Join(lines, "\n")
}

// dropHints say what to do about drops that can be avoided.
var dropHints = []struct{ drop, text string }{
	{"engine drop_qkey", "drop_qkey: a sender has another Q_Key; perftest's is --qkey 0x11111111"},
	{"engine drop_own_source", "drop_own_source: over UDP sockets the kernel gives a member its own messages back, which it has got already"},
	{"engine drop_no_receive", "drop_no_receive: messages came faster than this program took them; with --quiet it takes more"},
}
