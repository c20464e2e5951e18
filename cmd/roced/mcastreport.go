package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
)

// message is what is told of one that came.
type message struct {
	From      string  `json:"from"`
	QPN       uint32  `json:"qpn"`
	Size      int     `json:"size"` // bytes of payload
	GID       string  `json:"gid"`  // that it was sent to
	Immediate *uint32 `json:"immediate,omitempty"`
}

// mcastStart is what mcast prints when it is a member.
type mcastStart struct {
	Group  string `json:"group"`
	MGID   string `json:"mgid"`
	MAC    string `json:"mac"`
	Member string `json:"member"` // full or send-only
	side          // the address is a sender's
	QPN    uint32 `json:"qpn"`
	QKey   uint32 `json:"qkey"`
	send   bool
}

// mcastSummary is what mcast prints at the end.
type mcastSummary struct {
	Group    string            `json:"group"`
	Sent     uint64            `json:"sent"`
	Size     int               `json:"sent_size"` // bytes of payload, each
	Received uint64            `json:"received"`
	Own      uint64            `json:"received_own"`   // of Received: what the program sent itself
	Bytes    uint64            `json:"received_bytes"` // of payload
	Drops    map[string]uint64 `json:"drops"`          // by place and name
	Link     map[string]uint64 `json:"link_drops"`     // what the interface counted, which may repeat them
}

// tell counts a message, and prints it if that was asked for.
func (m *member) tell(wc *verbs.WC) error {
	grh, payload := wc.Payload(m.recvBuffer(wc))
	source := grh.SGID()
	m.received++
	m.bytes += uint64(len(payload))
	if m.options.send && wc.SrcQP == m.qp.Number() && source == m.source {
		m.own++
	}
	if m.options.quiet {
		return nil
	}
	t := message{From: source.Addr().String(), QPN: uint32(wc.SrcQP), Size: len(payload), GID: grh.DGID().String()}
	if wc.Flags&verbs.WCWithImm != 0 {
		t.Immediate = &wc.ImmData
	}
	return m.print(t.String(), t)
}

func (t message) String() string {
	immediate := "no immediate data"
	if t.Immediate != nil {
		immediate = fmt.Sprintf("immediate data 0x%08x", *t.Immediate)
	}
	return fmt.Sprintf("%s QP %v: %d bytes to %s, %s", t.From, verbs.QPN(t.QPN), t.Size, t.GID, immediate)
}

// print writes a line, as text or as JSON.
func (m *member) print(text string, value any) error {
	if !m.options.json {
		_, err := fmt.Fprintln(m.out, text)
		return err
	}
	return json.NewEncoder(m.out).Encode(value)
}

func (m *member) printStart() error {
	o, mgid := m.options, m.membership.MGID()
	s := mcastStart{
		Group: o.group.String(), MGID: mgid.String(), MAC: mcast.MAC(mgid).String(), Member: "full",
		side: m.device.side(""), QPN: uint32(m.qp.Number()), QKey: uint32(o.qkey), send: o.send,
	}
	if o.sendOnly {
		s.Member = "send-only"
	}
	if o.send {
		s.Address = m.source.Addr().String()
	}
	err := m.print(s.String(), struct {
		Start mcastStart `json:"start"`
	}{s})
	return errors.Join(err, m.out.Flush())
}

// String is for people.
func (s *mcastStart) String() string {
	doing := "listening"
	if s.send {
		doing = fmt.Sprintf("sending from %s, as a %s member,", s.Address, s.Member)
	}
	return fmt.Sprintf("%s to group %s (MGID %s, MAC %s)\n%s: QP %v, Q_Key %v, RDMA MTU %d, XDP %s, AF_XDP %s",
		doing, s.Group, s.MGID, s.MAC, s.Device, verbs.QPN(s.QPN), verbs.QKey(s.QKey), s.MTU, s.XDP, s.AFXDP)
}

func (m *member) printSummary() error {
	after, err := m.device.counters()
	if err != nil {
		return err
	}
	changed := since(m.before, after)
	s := mcastSummary{
		Group: m.options.group.String(), Sent: m.sent, Size: m.options.size, Received: m.received, Own: m.own, Bytes: m.bytes,
		Drops: losses(changed), Link: linkLosses(changed),
	}
	if err := m.print(s.String(), struct {
		Summary mcastSummary `json:"summary"`
	}{s}); err != nil {
		return err
	}
	return m.out.Flush()
}

// String is for people.
func (s *mcastSummary) String() string {
	var lines []string
	if s.Sent > 0 {
		lines = append(lines, fmt.Sprintf("sent %s of %d bytes", several(s.Sent, "message"), s.Size))
	}
	if s.Received > 0 || s.Sent == 0 {
		line := fmt.Sprintf("received %s, %s bytes of payload", several(s.Received, "message"), grouped(s.Bytes))
		if s.Own > 0 {
			line += fmt.Sprintf(", %s of them its own", grouped(s.Own))
		}
		lines = append(lines, line)
	}
	lines = append(lines, "dropped: "+cmp.Or(list(s.Drops), "none"))
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

// dropHints say what to do about drops that need not be.
var dropHints = []struct{ drop, text string }{
	{"engine drop_qkey", "drop_qkey: a sender has another Q_Key; perftest's is --qkey 0x11111111"},
	{"engine drop_no_receive", "drop_no_receive: messages came faster than this program took them; with --quiet it takes more"},
}
