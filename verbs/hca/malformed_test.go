// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"maps"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/wire/wiretest"
	"github.com/roced/roced/verbs"
)

// noise counts the hosts' own traffic (neighbour discovery): this counter can change at any time.
const noise = "pass_not_roce"

// moved returns the counters that have grown, with their growth.
func moved(before, after map[string]uint64) map[string]uint64 {
	m := maps.Clone(after)
	for name, n := range before {
		if m[name] -= n; m[name] == 0 {
			delete(m, name)
		}
	}
	return m
}

// Each malformed or unwanted kind of packet from the wire has a row: it is counted once under its own name, and does no
// harm.
func TestMalformed(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	b := l.b
	r := newRawSender(t, l.A, l.B, b.qp.Number())
	payload := []byte("some payload of a peer")
	along := func(source, dest string) []byte { return frame(r.path(source, dest), r.datagram(), payload) }
	with := func(do func(d *wire.Datagram)) []byte {
		d := r.datagram()
		do(&d)
		return frame(r.path("10.77.0.1", "10.77.0.2"), d, payload)
	}
	tagged := r.path("10.77.0.1", "10.77.0.2")
	tagged.VLAN = 5
	rows := []struct {
		name  string
		frame []byte
		want  []string // the counters that move by one
	}{
		{"ARP", r.changed(func(f []byte) { f[12], f[13] = 0x08, 0x06 }), []string{noise}},
		{"too short to identify", r.good(nil)[:30], []string{noise}},
		{"TCP", r.changed(func(f []byte) { f[wiretest.IP+9] = 6 }), []string{noise}},
		{"another port", r.changed(func(f []byte) { f[wiretest.UDP+3]++ }), []string{noise}},
		{"IP version 5", r.changed(func(f []byte) { f[wiretest.IP] = 0x55 }), []string{noise}},
		{"tagged", frame(tagged, r.datagram(), payload), []string{"pass_vlan"}},
		{"first fragment", r.changed(func(f []byte) { f[wiretest.IP+6] = 0x20 }), []string{"pass_fragment"}},
		{"last fragment", r.changed(func(f []byte) { f[wiretest.IP+6], f[wiretest.IP+7] = 0, 0x10 }), []string{"pass_fragment"}},
		{"IPv6 fragment", r.fragmentedIPv6(), []string{"pass_fragment"}},
		{"flooded unicast", along("10.77.0.1", "10.77.0.77"), []string{"pass_not_own"}},
		{"flooded IPv6 unicast", along("fd77::1", "fd77::77"), []string{"pass_not_own"}},
		{"group without members", along("10.77.0.1", "239.1.2.3"), []string{"pass_group"}},
		{"IP options", r.optioned(), []string{"drop_options"}},
		{"cut off", r.good(payload)[:60], []string{"drop_truncated"}},
		{"IP length longer than the frame", r.changed(func(f []byte) { f[wiretest.IP+2] = 0x10 }), []string{"drop_truncated"}},
		{"IP length shorter than UDP's", r.changed(func(f []byte) { f[wiretest.IP+3] -= 4 }), []string{"drop_length"}},
		{"UDP length shorter than IP's", r.changed(func(f []byte) { f[wiretest.UDP+5] -= 4 }), []string{"drop_length"}},
		{"no room for BTH and ICRC", r.shortened(wiretest.BTH + 12 + 3), []string{"drop_length"}},
		{"no room for DETH and ICRC", r.shortened(wiretest.DETH + 8), []string{"drop_length"}},
		{"own source reflected", along("10.77.0.2", "10.77.0.2"), []string{"drop_own_source"}},
		{"own IPv6 source reflected", along("fd77::2", "fd77::2"), []string{"drop_own_source"}},
		{"a group as source", along("239.1.2.3", "10.77.0.2"), []string{"drop_multicast_source"}},
		{"unknown QP", with(func(d *wire.Datagram) { d.DestQP += 1000 }), []string{"drop_unknown_qp"}},
		{"QP with the same low bits", with(func(d *wire.Datagram) { d.DestQP ^= 1 << 16 }), []string{"drop_unknown_qp"}},
		{"QP 0", with(func(d *wire.Datagram) { d.DestQP = 0 }), []string{"drop_unknown_qp"}},
		{"QP 1", with(func(d *wire.Datagram) { d.DestQP = 1 }), []string{"redirected", "qkey"}}, // the manager's
		{"group QP, own address", with(func(d *wire.Datagram) { d.DestQP = wire.QPNMulticast }), []string{"drop_unknown_qp"}},
		{"bad IP checksum", func() []byte { f := r.good(payload); f[wiretest.IP+10] ^= 1; return f }(), []string{"redirected", "ip_checksum"}},
		{"transport version 1", r.changed(func(f []byte) { f[wiretest.BTH+1] |= 1 }), []string{"redirected", "transport_version"}},
		{"unknown opcode", r.changed(func(f []byte) { f[wiretest.BTH] = 0x7F }), []string{"redirected", "unknown_opcode"}},
		{"pad longer than the payload", func() []byte {
			f := r.shortened(wiretest.Payload + 4)
			f[wiretest.BTH+1] |= 0x30
			return wiretest.Reseal(f)
		}(), []string{"redirected", "pad"}},
		{"length not in words", r.shortened(wiretest.Payload + 4 + 3), []string{"redirected", "pad"}},
		{"bad ICRC", func() []byte { f := r.good(payload); f[len(f)-1] ^= 1; return f }(), []string{"redirected", "icrc"}},
		{"bad payload", func() []byte { f := r.good(payload); f[wiretest.Payload] ^= 1; return f }(), []string{"redirected", "icrc"}},
		{"congestion notification", func() []byte {
			f := r.shortened(wiretest.BTH + 12 + 16 + 4)
			f[wiretest.BTH] = 0x81
			return wiretest.Reseal(f)
		}(), []string{"redirected", "congestion_notification"}},
		{"connected service", r.changed(func(f []byte) { f[wiretest.BTH] = 0x04 }), []string{"redirected", "unsupported"}},
		{"P_Key of another partition", with(func(d *wire.Datagram) { d.PKey = 0x8001 }), []string{"redirected", "pkey"}},
		{"P_Key 0", with(func(d *wire.Datagram) { d.PKey = 0x8000 }), []string{"redirected", "pkey"}},
		{"Q_Key", with(func(d *wire.Datagram) { d.QKey++ }), []string{"redirected", "qkey"}},
		{"longer than the MTU", r.good(make([]byte, 1028)), []string{"redirected", "too_long"}},
		{"too long for the buffer", r.good(make([]byte, 700)), []string{"redirected", "no_room"}},
		{"empty", r.good(nil), []string{"redirected", "delivered"}},
		{"reserved bits and FECN set", func() []byte { f := r.good(payload); f[wiretest.BTH+4] = 0xFF; return f }(), []string{"redirected", "delivered"}},
		{"MigReq 0, source port 0, UDP checksum", r.changed(func(f []byte) {
			f[wiretest.BTH+1] &^= 0x40
			copy(f[wiretest.UDP:], []byte{0, 0})
			copy(f[wiretest.UDP+6:], []byte{1, 2})
		}), []string{"redirected", "delivered"}},
		{"padded by Ethernet", append(r.good(payload), make([]byte, 20)...), []string{"redirected", "delivered"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{b.piece(1, 140)}}}))
			memory := append([]byte(nil), b.slot(1)...)
			before := counts(t, b.device)
			r.send(row.frame)
			seen := row.want[len(row.want)-1]
			eventually(t, seen, func() bool { return counts(t, b.device)[seen] > before[seen] })
			got := moved(before, counts(t, b.device))
			if seen != noise {
				delete(got, noise)
			} else {
				got[noise] = 1
			}
			for _, name := range row.want {
				if got[name]--; got[name] == 0 {
					delete(got, name)
				}
			}
			if len(got) != 0 {
				t.Errorf("counters besides one each of %v: %v", row.want, got)
			}
			if seen == "delivered" {
				expect(t, b.wait(1), ok(1))
				return
			}
			// The receive is still posted for the next packet, and its memory is unchanged.
			b.device.engine.Do(func() {
				if string(memory) != string(b.slot(1)) {
					t.Error("memory was written")
				}
			})
			r.send(r.good(payload))
			expect(t, b.wait(1), ok(1))
			clear(b.slot(1))
		})
	}
}

// Packets that the queue pair itself cannot accept.
func TestUnwanted(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	b := l.b
	rows := []struct {
		name    string
		prepare func(qp *verbs.QP)
		want    string
	}{
		{"no receive posted", func(qp *verbs.QP) { check(t, qp.Activate(testQKey)) }, "no_receive"},
		{"INIT", func(qp *verbs.QP) { toInit(t, qp) }, "qp_state"},
		{"RESET", func(*verbs.QP) {}, "qp_state"},
		{"ERR", func(qp *verbs.QP) { check(t, qp.Activate(testQKey)); to(t, qp, verbs.QPStateErr) }, "qp_state"},
		{"memory without write access", func(qp *verbs.QP) {
			check(t, qp.Activate(testQKey))
			check(t, qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{{LKey: 3, Length: 2048}}}}))
		}, "protection"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			qp := b.newQP(defaultCap())
			row.prepare(qp)
			before := counts(t, b.device)
			r := newRawSender(t, l.A, l.B, qp.Number())
			r.send(r.good(nil))
			eventually(t, row.want, func() bool { return counts(t, b.device)[row.want] > before[row.want] })
			got := moved(before, counts(t, b.device))
			delete(got, noise)
			if len(got) != 2 || got["redirected"] != 1 || got[row.want] != 1 {
				t.Errorf("counters %v, want redirected and %s", got, row.want)
			}
		})
	}
}
