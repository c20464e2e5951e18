// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"bytes"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
)

// TestAnswersAreTheKernels: this manager answers the kernel's requests byte for byte like the kernel.
func TestAnswersAreTheKernels(t *testing.T) {
	for _, row := range []struct {
		capture       string
		asked, answer int // messages of the capture
		counter       Counter
	}{
		{"rdmacm_nolistener", 0, 1, ConnectionsRejected},
		{"sidr_nolistener", 0, 1, NoListener},
		{"rping", 3, 4, DisconnectsConfirmed},
		{"ucmatose", 3, 4, DisconnectsConfirmed},
	} {
		m, peer := newManager(t), peerMessages(t, row.capture)
		came := there
		came.TrafficClass, came.HopLimit, came.FlowLabel = 0x68, 63, 5
		m.Receive(start, came, peer[row.asked])
		d := one(t, sent(m))
		if !bytes.Equal(d.MAD[:], peer[row.answer]) || d.Path != there {
			t.Errorf("%s: along %+v\n%x, want\n%x", row.capture, d.Path, d.MAD, peer[row.answer])
		}
		counted(t, m, map[Counter]uint64{row.counter: 1, Sent: 1})
		none(t, "events", told(m))
	}
}

// built returns a message with an attribute, changed.
func built(attribute wire.Attribute, change func(h *wire.MADHeader)) wire.MAD {
	m := make(wire.MAD, wire.MADLen)
	h := wire.MADHeader{
		BaseVersion: wire.MADBaseVersion, Class: wire.ClassCM, ClassVersion: wire.ClassVersionCM, Method: wire.MethodSend,
		TransactionID: 77, Attribute: attribute,
	}
	if change != nil {
		change(&h)
	}
	m.PutHeader(h)
	copy(m[wire.MADHeaderLen:], []byte{0, 0, 0, 5, 0, 0, 0, 6}) // the ids: the sender's 5, ours 6
	return m
}

// TestStrangers: unrequested or unknown messages are counted once and get at most one answer.
func TestStrangers(t *testing.T) {
	rej := func(ids wire.CommIDs, rejected wire.Answered, reason wire.RejectReason) func(wire.MAD) bool {
		return func(m wire.MAD) bool {
			return m.REJ() == wire.REJ{CommIDs: ids, Rejected: rejected, Reason: reason} && m.Header().Attribute == wire.AttributeREJ
		}
	}
	header := func(change func(*wire.MADHeader)) func(wire.MAD) bool {
		return func(m wire.MAD) bool {
			return bytes.Equal(m[:wire.MADHeaderLen], built(0x0001, change)[:wire.MADHeaderLen])
		}
	}
	method := func(method wire.Method) func(*wire.MADHeader) { return func(h *wire.MADHeader) { h.Method = method } }
	classVersion := func(h *wire.MADHeader) { h.ClassVersion = 1 }
	for _, row := range []struct {
		name    string
		mad     []byte
		counter Counter
		answer  func(wire.MAD) bool // nil: none
	}{
		{"REQ", built(wire.AttributeREQ, nil), ConnectionsRejected, rej(wire.CommIDs{Remote: 5}, wire.AnsweredREQ, wire.RejectServiceID)},
		{"REP", built(wire.AttributeREP, nil), Stray, rej(wire.CommIDs{Local: 6, Remote: 5}, wire.AnsweredREP, wire.RejectCommID)},
		{"DREQ", built(wire.AttributeDREQ, nil), DisconnectsConfirmed, func(m wire.MAD) bool {
			return m.DREP() == wire.DREP{CommIDs: wire.CommIDs{Local: 6, Remote: 5}} && m.Header().Attribute == wire.AttributeDREP
		}},
		{"LAP", built(wire.AttributeLAP, nil), PathsRefused, func(m wire.MAD) bool {
			return m.APR() == wire.APR{CommIDs: wire.CommIDs{Local: 6, Remote: 5}, Status: wire.APRCommID} && m.Header().Attribute == wire.AttributeAPR
		}},
		{"MRA", built(wire.AttributeMRA, nil), Stray, nil},
		{"REJ", built(wire.AttributeREJ, nil), Stray, nil},
		{"RTU", built(wire.AttributeRTU, nil), Stray, nil},
		{"DREP", built(wire.AttributeDREP, nil), Stray, nil},
		{"APR", built(wire.AttributeAPR, nil), Stray, nil},
		{"SIDR_REP", built(wire.AttributeSIDRRep, nil), Stray, nil},
		{"SIDR_REQ for nothing", built(wire.AttributeSIDRReq, nil), NoListener, func(m wire.MAD) bool { return m.SIDRRep().Status == wire.SIDRNotSupported }},
		{"an unknown attribute", built(0x1B, nil), Unknown, nil},
		{"an unknown method", built(0x0001, method(0x05)), Unknown, nil},
		{"a response", built(0x0001, method(wire.MethodGetResp)), Unknown, nil},
		{"Get", built(0x0001, method(wire.MethodGet)), Unsupported, header(func(h *wire.MADHeader) {
			h.Method, h.Status = wire.MethodGetResp, wire.MADStatusUnsupported
		})},
		{"Set", built(0x0001, method(wire.MethodSet)), Unsupported, header(func(h *wire.MADHeader) {
			h.Method, h.Status = wire.MethodGetResp, wire.MADStatusUnsupported
		})},
		{"Get of another class", built(0x0001, func(h *wire.MADHeader) { h.Class, h.ClassVersion, h.Method = 0x04, 1, wire.MethodGet }), Unsupported,
			header(func(h *wire.MADHeader) {
				h.Class, h.ClassVersion, h.Method, h.Status = 0x04, 1, wire.MethodGetResp, wire.MADStatusUnsupported
			})},
		{"Get of another version", built(0x0001, func(h *wire.MADHeader) { h.ClassVersion, h.Method = 1, wire.MethodGet }), Unsupported,
			header(func(h *wire.MADHeader) {
				h.ClassVersion, h.Method, h.Status = 1, wire.MethodGetResp, wire.MADStatusBadVersion
			})},
		{"another class", built(wire.AttributeREQ, func(h *wire.MADHeader) { h.Class = 0x03 }), Unknown, nil},
		{"REQ of another version", built(wire.AttributeREQ, classVersion), BadVersion, rej(wire.CommIDs{Remote: 5}, wire.AnsweredREQ, wire.RejectClassVersion)},
		{"SIDR_REQ of another version", built(wire.AttributeSIDRReq, classVersion), BadVersion, func(m wire.MAD) bool { return m.SIDRRep().Status == wire.SIDRVersion }},
		{"REJ of another version", built(wire.AttributeREJ, classVersion), BadVersion, nil},
		{"another base version", built(wire.AttributeREQ, func(h *wire.MADHeader) { h.BaseVersion = 2 }), BadVersion, nil},
		{"too short", built(wire.AttributeREQ, nil)[:255], BadLength, nil},
		{"nothing", nil, BadLength, nil},
		{"too long", append(built(wire.AttributeREQ, nil), 0), BadLength, nil},
	} {
		m := newManager(t)
		m.Receive(start, there, row.mad)
		want := map[Counter]uint64{row.counter: 1}
		if row.answer == nil {
			none(t, row.name, sent(m))
		} else if d := one(t, sent(m)); !row.answer(d.mad()) || d.Path != there || d.mad().Header().TransactionID != 77 {
			t.Errorf("%s: answer along %+v: %x", row.name, d.Path, d.MAD)
		} else {
			want[Sent] = 1
		}
		counted(t, m, want)
	}
}

// TestRefusalsAreLimited: the number of refusals at once and per second is limited, of all kinds.
func TestRefusalsAreLimited(t *testing.T) {
	m, now := newManager(t), start
	refusals := func(n int) int {
		for i := range n {
			m.Receive(now, there, built([]wire.Attribute{wire.AttributeREQ, wire.AttributeDREQ, wire.AttributeSIDRReq, wire.AttributeLAP}[i%4], nil))
		}
		return len(sent(m))
	}
	if n := refusals(3 * refusalBurst); n != refusalBurst {
		t.Errorf("got %d refusals at once", n)
	}
	now = now.Add(10*refusalEvery + time.Microsecond)
	if n := refusals(100); n != 10 {
		t.Errorf("got %d refusals after the time for 10", n)
	}
	sum := 0
	for end := now.Add(time.Second); now.Before(end); now = now.Add(time.Millisecond) {
		sum += refusals(100)
	}
	if want := int(time.Second / refusalEvery); sum < want-1 || sum > want+1 {
		t.Errorf("got %d refusals in a second, want %d", sum, want)
	}
	now = now.Add(time.Hour)
	if n := refusals(3 * refusalBurst); n != refusalBurst {
		t.Errorf("got %d refusals at once after a pause", n)
	}
	if c := m.Counters(); c.received() != c[Sent]+c[RefusalsLimited] {
		t.Errorf("%d received, %d sent, %d not", c.received(), c[Sent], c[RefusalsLimited])
	}
}
