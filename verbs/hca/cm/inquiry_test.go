// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// TestExchangeIsTheKernels: an inquiry and its reply are byte for byte those of udaddy, with the same numbers.
func TestExchangeIsTheKernels(t *testing.T) {
	peer := peerMessages(t, "udaddy")
	numbers := []uint64{0x2ee86554d, 0x4d5586ee}
	client, server := New(func() (n uint64) { n, numbers = numbers[0], numbers[1:]; return n }), newManager(t)
	listener, err := server.Listen(ListenConfig{Service: service, Address: netip.MustParseAddr("10.99.0.2"), Owner: "server"})
	check(t, err)
	config := ask(back, "client")
	config.Path.TrafficClass = 0x68
	config.Source = netip.MustParseAddrPort("10.99.0.3:53189")
	_, err = client.Ask(start, config)
	check(t, err)
	asked := one(t, sent(client))
	if !bytes.Equal(asked.MAD[:], peer[0]) || asked.Path != config.Path {
		t.Errorf("along %+v\n%x, want\n%x", asked.Path, asked.MAD, peer[0])
	}
	server.Receive(start, there, asked.MAD[:])
	if e := one(t, told(server)); e.Kind != EventRequest || e.Owner != "server" {
		t.Errorf("%+v", e)
	}
	r := listener.Next()
	if r == nil || r.Service != service || r.Path != there || r.Source != config.Source || r.Dest != config.Dest || r.PrivateData != [RequestData]byte{} {
		t.Fatalf("%+v", r)
	}
	if listener.Next() != nil {
		t.Error("a second request")
	}
	none(t, "before the owner has replied", sent(server))
	check(t, r.Reply(start, Answer{QPN: 31, QKey: 0x01234567}))
	answered := one(t, sent(server))
	if !bytes.Equal(answered.MAD[:], peer[1]) || answered.Path != there {
		t.Errorf("along %+v\n%x, want\n%x", answered.Path, answered.MAD, peer[1])
	}
	client.Receive(start, back, answered.MAD[:])
	e := one(t, told(client))
	if a := e.Answer; e.Kind != EventReply || e.Owner != "client" || a.Status != wire.SIDRValid || a.QPN != 31 || a.QKey != 0x01234567 || len(a.PrivateData) != ReplyData {
		t.Errorf("%+v", e)
	}
	client.Receive(start, back, answered.MAD[:]) // again
	none(t, "events of a second answer", told(client))
	counted(t, client, map[Counter]uint64{Replies: 1, Stray: 1, Sent: 1})
	counted(t, server, map[Counter]uint64{Requests: 1, Sent: 1})
	if _, some := client.Deadline(); some {
		t.Error("got a timer on an idle manager")
	}
}

// TestPrivateData passes both ways, up to its length.
func TestPrivateData(t *testing.T) {
	for _, version := range []struct{ there, back Path }{{there, back}, {path("fd99::2", "fd99::3"), path("fd99::3", "fd99::2")}} {
		client, server := newManager(t), newManager(t)
		listener, err := server.Listen(ListenConfig{Service: service})
		check(t, err)
		config := ask(version.back, nil)
		config.PrivateData = make([]byte, RequestData+1)
		_, err = client.Ask(start, config)
		refused(t, err, verbs.ErrInvalid, "181 bytes")
		config.PrivateData = bytes.Repeat([]byte{7}, RequestData)
		_, err = client.Ask(start, config)
		check(t, err)
		config.PrivateData[0] = 0 // it was copied
		server.Receive(start, version.there, mad(one(t, sent(client))))
		r := listener.Next()
		if !bytes.Equal(r.PrivateData[:], bytes.Repeat([]byte{7}, RequestData)) || r.Source != config.Source || r.Dest != config.Dest {
			t.Errorf("%+v", r)
		}
		refused(t, r.Reply(start, Answer{PrivateData: make([]byte, ReplyData+1)}), verbs.ErrInvalid, "137 bytes")
		check(t, r.Reply(start, Answer{Status: wire.SIDRReject, QPN: 5, QKey: 6, PrivateData: bytes.Repeat([]byte{8}, ReplyData)}))
		refused(t, r.Reply(start, Answer{}), verbs.ErrInvalid, "answered already")
		client.Receive(start, version.back, mad(one(t, sent(server))))
		a := one(t, told(client)).Answer
		if !bytes.Equal(a.PrivateData, bytes.Repeat([]byte{8}, ReplyData)) || a.Status != wire.SIDRReject || a.QPN != 0 || a.QKey != 0 {
			t.Errorf("%+v", a)
		}
	}
	mapped := ask(there, nil)
	mapped.Source, mapped.Dest = netip.MustParseAddrPort("[::ffff:10.99.0.2]:1"), netip.MustParseAddrPort("[::ffff:10.99.0.3]:2")
	m := newManager(t)
	_, err := m.Ask(start, mapped)
	check(t, err)
	if a, ok := wire.CMAddressOf(mad(one(t, sent(m)))[wire.MADHeaderLen+16:]); !ok || a.Source != netip.MustParseAddrPort("10.99.0.2:1") {
		t.Errorf("%+v", a)
	}
	config := ask(there, nil)
	config.Source = netip.MustParseAddrPort("[fd99::2]:1")
	_, err = newManager(t).Ask(start, config)
	refused(t, err, verbs.ErrInvalid, "one IP version")
	_, err = newManager(t).Ask(start, AskConfig{})
	refused(t, err, verbs.ErrInvalid, "one IP version")
}

// TestRetries: an unanswered request is repeated as often and as fast as requested.
func TestRetries(t *testing.T) {
	for _, row := range []struct {
		timeout time.Duration
		retries int
		every   time.Duration
		tries   int
	}{
		{0, 0, 4096 * time.Millisecond, 16}, {time.Second, 2, time.Second, 3}, {time.Second, -1, time.Second, 1},
	} {
		m, config := newManager(t), ask(back, "asker")
		config.Timeout, config.Retries = row.timeout, row.retries
		_, err := m.Ask(start, config)
		check(t, err)
		first, now := one(t, sent(m)), start
		for try := 1; try <= row.tries; try++ {
			at, some := m.Deadline()
			if want := now.Add(row.every); !some || at != want {
				t.Fatalf("try %d ends at %v, want %v", try, at, want)
			}
			m.Expire(at.Add(-1))
			none(t, "before its time", sent(m))
			now = at
			m.Expire(now)
			if try == row.tries {
				break
			}
			if again := one(t, sent(m)); again != first {
				t.Errorf("try %d differs", try)
			}
			none(t, "events before the last try", told(m))
		}
		none(t, "tries after the last", sent(m))
		if e := one(t, told(m)); e.Kind != EventTimeout || e.Owner != "asker" {
			t.Errorf("%+v", e)
		}
		if _, some := m.Deadline(); some || len(m.inquiries) != 0 {
			t.Error("the inquiry has not ended")
		}
		want := map[Counter]uint64{Timeouts: 1, Sent: uint64(row.tries)}
		if row.tries > 1 {
			want[Retries] = uint64(row.tries - 1)
		}
		counted(t, m, want)
	}
}

// TestCancel ends an inquiry without an event, at any time.
func TestCancel(t *testing.T) {
	m := newManager(t)
	var all []*Inquiry
	for range 50 {
		q, err := m.Ask(start, ask(back, nil))
		check(t, err)
		all = append(all, q)
	}
	requests := sent(m)
	for i, q := range all {
		if i%2 == 0 {
			q.Cancel()
			q.Cancel()
		}
	}
	for _, d := range requests {
		m.Receive(start, back, replyTo(d.mad(), 0))
	}
	if events := told(m); len(events) != 25 {
		t.Errorf("%d events", len(events))
	}
	for _, q := range all {
		q.Cancel() // also of those that have ended
	}
	if _, some := m.Deadline(); some || len(m.inquiries) != 0 || len(m.timers) != 0 {
		t.Errorf("left: %d inquiries, %d timers", len(m.inquiries), len(m.timers))
	}
}

// replyTo returns a reply to a request.
func replyTo(request wire.MAD, status wire.SIDRStatus) wire.MAD {
	asked := request.SIDRReq()
	m := make(wire.MAD, wire.MADLen)
	m.PutSIDRRep(request.Header().TransactionID, &wire.SIDRRep{RequestID: asked.RequestID, Status: status, ServiceID: asked.ServiceID})
	return m
}

// TestForgedReplies: a reply is accepted only from the peer, with both numbers of the request.
func TestForgedReplies(t *testing.T) {
	m := newManager(t)
	_, err := m.Ask(start, ask(back, nil))
	check(t, err)
	asked := one(t, sent(m))
	otherID, otherTID := replyTo(asked.mad(), 0), replyTo(asked.mad(), 0)
	otherID[wire.MADHeaderLen] ^= 1
	otherTID[8] ^= 1
	for _, forged := range []struct {
		path Path
		mad  wire.MAD
	}{
		{back, otherID}, {back, otherTID}, {path("10.99.0.3", "10.99.0.4"), replyTo(asked.mad(), 0)}, {path("10.99.0.4", "10.99.0.2"), replyTo(asked.mad(), 0)},
	} {
		m.Receive(start, forged.path, forged.mad)
	}
	none(t, "events", told(m))
	counted(t, m, map[Counter]uint64{Stray: 4, Sent: 1})
	m.Receive(start, back, replyTo(asked.mad(), wire.SIDRNoQP))
	if e := one(t, told(m)); e.Answer.Status != wire.SIDRNoQP {
		t.Errorf("%+v", e)
	}
}

// TestSendOverflow: the queue of messages to send is limited.
func TestSendOverflow(t *testing.T) {
	m := newManager(t)
	for range maxOut + 10 {
		_, err := m.Ask(start, ask(back, nil))
		check(t, err)
	}
	if n := len(sent(m)); n != maxOut || m.Waiting() {
		t.Errorf("%d messages waited", n)
	}
	counted(t, m, map[Counter]uint64{Sent: maxOut, SendOverflow: 10})
}
