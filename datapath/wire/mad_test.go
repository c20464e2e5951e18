// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"testing"
)

// message is a message that a MAD's methods read and write: one of the structs, and its Put method.
type message struct {
	contents any
	put      func(m MAD, transactionID uint64)
}

// read reads a message by its attribute; the zero message for an unknown one.
func read(m MAD) message {
	switch m.Header().Attribute {
	case AttributeREQ:
		f := m.REQ()
		return message{f, func(m MAD, id uint64) { m.PutREQ(id, &f) }}
	case AttributeMRA:
		f := m.MRA()
		return message{f, func(m MAD, id uint64) { m.PutMRA(id, &f) }}
	case AttributeREJ:
		f := m.REJ()
		return message{f, func(m MAD, id uint64) { m.PutREJ(id, &f) }}
	case AttributeREP:
		f := m.REP()
		return message{f, func(m MAD, id uint64) { m.PutREP(id, &f) }}
	case AttributeRTU:
		f := m.RTU()
		return message{f, func(m MAD, id uint64) { m.PutRTU(id, &f) }}
	case AttributeDREQ:
		f := m.DREQ()
		return message{f, func(m MAD, id uint64) { m.PutDREQ(id, &f) }}
	case AttributeDREP:
		f := m.DREP()
		return message{f, func(m MAD, id uint64) { m.PutDREP(id, &f) }}
	case AttributeSIDRReq:
		f := m.SIDRReq()
		return message{f, func(m MAD, id uint64) { m.PutSIDRReq(id, &f) }}
	case AttributeSIDRRep:
		f := m.SIDRRep()
		return message{f, func(m MAD, id uint64) { m.PutSIDRRep(id, &f) }}
	case AttributeLAP:
		f := m.LAP()
		return message{f, func(m MAD, id uint64) { m.PutLAP(id, &f) }}
	case AttributeAPR:
		f := m.APR()
		return message{f, func(m MAD, id uint64) { m.PutAPR(id, &f) }}
	}
	return message{}
}

// dirty returns a MAD filled with 0xA5, so that bytes that were not written are visible.
func dirty() MAD { return MAD(bytes.Repeat([]byte{0xA5}, MADLen)) }

// managed returns the MADs of a capture, in order.
func managed(t testing.TB, capture string) (all []MAD) {
	t.Helper()
	for _, frame := range peerFrames(t, capture) {
		var p Packet
		if Parse(frame, &p) != FaultNone || p.BTH().DestQP() != QPNGSI {
			continue
		}
		m, ok := ParseMAD(p.Payload())
		if !ok {
			t.Fatalf("%s: a MAD of %d bytes", capture, len(p.Payload()))
		}
		all = append(all, m)
	}
	return all
}

// allMessages returns the MADs of all captures.
func allMessages(t testing.TB) (all []MAD) {
	for capture := range captures {
		all = append(all, managed(t, capture)...)
	}
	return all
}

// TestPeerMessagesRebuilt: a message written from the fields of the peer's message equals it.
func TestPeerMessagesRebuilt(t *testing.T) {
	seen := map[Attribute]bool{}
	for _, m := range allMessages(t) {
		h := m.Header()
		want := MADHeader{
			BaseVersion: MADBaseVersion, Class: ClassCM, ClassVersion: ClassVersionCM, Method: MethodSend,
			TransactionID: h.TransactionID, Attribute: h.Attribute,
		}
		if h != want || h.TransactionID == 0 {
			t.Errorf("header %+v, want %+v", h, want)
		}
		built := dirty()
		read(m).put(built, h.TransactionID)
		if !bytes.Equal(built, m) {
			t.Errorf("%v:\n%x, want\n%x", h.Attribute, built, m)
		}
		seen[h.Attribute] = true
	}
	if len(seen) != 8 {
		t.Errorf("messages in the captures: %v", seen)
	}
}

// TestMADHeader: all fields of the header, of another class.
func TestMADHeader(t *testing.T) {
	h := MADHeader{
		BaseVersion: 2, Class: 0x03, ClassVersion: 4, Method: MethodGetResp, Status: MADStatusUnsupported,
		TransactionID: 0x0102030405060708, Attribute: 0x1112, Modifier: 0x21222324,
	}
	m := dirty()
	m.PutHeader(h)
	want := "02030481" + "000c" + "0000" + "0102030405060708" + "1112" + "0000" + "21222324" + zeros(232)
	if got := hex.EncodeToString(m); got != want || m.Header() != h {
		t.Errorf("%s, %+v", got, m.Header())
	}
}

// TestParseMAD: a MAD has a fixed length.
func TestParseMAD(t *testing.T) {
	for _, length := range []int{0, 23, 24, 255, 256, 257, 296} {
		if _, ok := ParseMAD(make([]byte, length)); ok != (length == MADLen) {
			t.Errorf("%d bytes: %v", length, ok)
		}
	}
}

func TestCMAddress(t *testing.T) {
	for _, row := range []struct {
		address CMAddress
		bytes   string
	}{
		{CMAddress{netip.MustParseAddrPort("10.99.0.3:53189"), netip.MustParseAddr("10.99.0.2")}, addressHeader("cfc5")},
		{
			CMAddress{netip.MustParseAddrPort("[fd99::3]:7174"), netip.MustParseAddr("fd99::2")},
			"00601c06" + "fd990000000000000000000000000003" + "fd990000000000000000000000000002",
		},
	} {
		header := bytes.Repeat([]byte{0xA5}, CMAddressLen+1)
		row.address.Put(header)
		if got := hex.EncodeToString(header); got != row.bytes+"a5" {
			t.Errorf("%+v: %s, want %s", row.address, got, row.bytes)
		}
		if got, ok := CMAddressOf(header); !ok || got != row.address {
			t.Errorf("%s: %+v, %v", row.bytes, got, ok)
		}
		for at, value := range map[int]byte{cmAddressVersion: 1, cmAddressIPVersion: 0x50} {
			other := bytes.Clone(header)
			other[at] = value
			if _, ok := CMAddressOf(other); ok {
				t.Errorf("accepted with %#x at %d", value, at)
			}
		}
	}
}

func TestServiceID(t *testing.T) {
	if s := ServiceIDFor(PortSpaceUDP, 7174); s != 0x0111_1c06 || s.Port() != 7174 || s.PortSpace() != PortSpaceUDP || s.String() != "0x0000000001111c06" {
		t.Errorf("%v, port %d of %v", s, s.Port(), s.PortSpace())
	}
	for name, got := range map[string]fmt.Stringer{
		"UDP": PortSpaceUDP, "TCP": PortSpaceTCP, "IB": PortSpaceIB, "IPOIB": PortSpaceIPoIB, "port space 0x0000": PortSpace(0),
		"REQ": AttributeREQ, "APR": AttributeAPR, "attribute(0x001b)": AttributeAPR + 1, "rejected": SIDRReject, "SIDR status 6": SIDRVersion + 1,
	} {
		if got.String() != name {
			t.Errorf("%q, want %q", got, name)
		}
	}
}

// FuzzMAD: no accessor fails on any 256 bytes, and a written message is read unchanged.
func FuzzMAD(f *testing.F) {
	for _, m := range allMessages(f) {
		f.Add([]byte(m))
	}
	for attribute := range attributeNames {
		m := dirty()
		m[madAttribute], m[madAttribute+1] = 0, byte(int(AttributeREQ)+attribute)
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, ok := ParseMAD(payload)
		if !ok {
			return
		}
		if a, ok := CMAddressOf(m[madData+sidrReqPrivateData:]); ok {
			again := make([]byte, CMAddressLen)
			a.Put(again)
			if b, ok := CMAddressOf(again); !ok || a != b {
				t.Errorf("%+v, written and read %+v", a, b)
			}
		}
		was := read(m)
		if was.put == nil {
			return
		}
		h, built := m.Header(), dirty()
		was.put(built, h.TransactionID)
		if is := read(built); is.contents != was.contents || built.Header().TransactionID != h.TransactionID || built.Header().Attribute != h.Attribute {
			t.Errorf("read\n%+v, written and read\n%+v", was.contents, is.contents)
		}
		for i, b := range built[madData:] {
			if b&^m[madData+i] != 0 {
				t.Errorf("%v: byte %d has unexpected bits %#x", h.Attribute, i, b&^m[madData+i])
			}
		}
	})
}
