// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

var (
	grhText  = strings.Repeat("00", 20) + "4500003c00014000401125ea0a6200010a620002"
	saidText = "qpn 17\n" +
		"got 0 from 2 imm none grh " + grhText + " data empty\n" +
		"got 3 from 2 imm deadbe01 grh " + grhText + " data 20272e\n"
)

func TestParseMessages(t *testing.T) {
	got, err := parseMessages(saidText)
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	grh, _ := hex.DecodeString(grhText)
	empty, full := got[0], got[1]
	if len(empty.data) != 0 || empty.hasImm || empty.source != 2 || !bytes.Equal(empty.grh, grh) {
		t.Errorf("%+v", empty)
	}
	if !bytes.Equal(full.data, payload(2, 3)) || !full.hasImm || full.imm != immediate(1) {
		t.Errorf("%+v", full)
	}
}

func FuzzParseMessages(f *testing.F) {
	f.Add(saidText)
	f.Add(strings.Replace(saidText, "got 3", "got 4", 1))
	f.Add(strings.Replace(saidText, "4500", "45", 1))
	f.Fuzz(func(t *testing.T, said string) {
		got, err := parseMessages(said)
		if err != nil {
			return
		}
		for _, m := range got {
			if len(m.grh) != 40 {
				t.Errorf("%+v", m)
			}
		}
	})
}

// TestExcuses checks that a false positive of tshark is accepted only for packets that are known to cause it.
func TestExcuses(t *testing.T) {
	const malformed, checksum = "Malformed Packet (Exception occurred)", "Illegal checksum value (0)"
	rows := []struct {
		p         *packet
		complaint string
		want      string
	}{
		{nil, malformed, ""},
		{&packet{}, malformed, ""},
		{&packet{empty: true}, malformed, tsharkEmpty},
		{&packet{ipv6: true}, checksum, tsharkChecksum},
		{&packet{}, checksum, ""},
		{&packet{ipv6: true}, malformed, ""},
		{&packet{empty: true, ipv6: true}, "something else", ""},
	}
	for _, row := range rows {
		if got := row.p.excuses(row.complaint); got != row.want {
			t.Errorf("%+v, %q: %q, want %q", row.p, row.complaint, got, row.want)
		}
	}
	for text, want := range map[string]bool{"": false, "4194304": false, "6291456": true, "2097152,8388608": true, "0x00600000": true} {
		if grave(text) != want {
			t.Errorf("severity %q", text)
		}
	}
}

func TestMGIDBytes(t *testing.T) {
	if got := mgidBytes(groupIPv4); got != "0:0:0:0:0:0:0:0:0:0:255:255:239:77:0:1" {
		t.Error(got)
	}
}
