// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"encoding/json"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

func TestRemoteAsBytes(t *testing.T) {
	r := rc.RemoteRegion{Addr: 0x0102030405060708, Length: 0x0d0e0f10, Key: 0x090a0b0c}
	b, err := r.MarshalBinary()
	if want := "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"; err != nil || string(b) != want || len(b) != rc.RemoteRegionLen {
		t.Errorf("got %x, %v", b, err)
	}
	var again rc.RemoteRegion
	if err := again.UnmarshalBinary(b); err != nil || again != r {
		t.Errorf("got %v, %v", again, err)
	}
	for _, bad := range []string{"", string(b[:15]), string(b) + "x", "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01"} {
		refused(t, again.UnmarshalBinary([]byte(bad)), verbs.ErrInvalid)
	}
	if again != r {
		t.Errorf("got %v after an invalid handle", again)
	}
}

func TestRemoteAsText(t *testing.T) {
	for text, want := range map[string]rc.RemoteRegion{
		"0x0+4096,rkey=0x89abcdef":         {Length: 4096, Key: 0x89abcdef},
		"0xfffffffffffffff0+15,rkey=0x1":   {Addr: 0xfffffffffffffff0, Length: 15, Key: 1},
		"16+0x10,rkey=7":                   {Addr: 16, Length: 16, Key: 7},
		"0x0+4294967295,rkey=0x00000000":   {Length: 0xffffffff},
		"0xdeadbeef000+0,rkey=0xffffffff":  {Addr: 0xdeadbeef000, Key: 0xffffffff},
		"0x7f0000001000+64,rkey=0x0000002": {Addr: 0x7f0000001000, Length: 64, Key: 2},
	} {
		if got, err := rc.ParseRemoteRegion(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
		if again, err := rc.ParseRemoteRegion(want.String()); err != nil || again != want {
			t.Errorf("%+v: got text %v", want, want)
		}
	}
	for _, text := range []string{"", "0x0", "0x0+1", "0x0,rkey=1", "+1,rkey=1", "0x0+,rkey=1", "0x0+1,rkey=", "0x0+1,rkey=0x100000000", "0x0+0x100000000,rkey=1", "-1+1,rkey=1",
		"0x10000000000000000+1,rkey=1", "0xffffffffffffffff+1,rkey=1", "0x0+1,key=1", "0x0+1+1,rkey=1"} {
		got, err := rc.ParseRemoteRegion(text)
		refused(t, err, verbs.ErrInvalid)
		if got != (rc.RemoteRegion{}) {
			t.Errorf("%q: got %v together with an error", text, got)
		}
	}
	type config struct{ Memory rc.RemoteRegion }
	want := config{rc.RemoteRegion{Addr: 8, Length: 100, Key: 3}}
	text, err := json.Marshal(want)
	check(t, err)
	var got config
	if err := json.Unmarshal(text, &got); err != nil || got != want || string(text) != `{"Memory":"0x8+100,rkey=0x00000003"}` {
		t.Errorf("%s: got %v, %v", text, got, err)
	}
}

func FuzzParseRemote(f *testing.F) {
	f.Add("0x0+4096,rkey=0x89abcdef")
	f.Add("0xffffffffffffffff+1,rkey=0")
	f.Add("+,rkey=")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := rc.ParseRemoteRegion(text)
		if err != nil {
			return
		}
		if again, err := rc.ParseRemoteRegion(r.String()); err != nil || again != r {
			t.Errorf("%q: got %+v with the text %v, which parses as %+v, %v", text, r, r, again, err)
		}
		if part, err := r.Slice(0, int(r.Length)); err != nil || part != r {
			t.Errorf("whole slice of %v: got %v, %v", r, part, err)
		}
	})
}

func FuzzUnmarshalRemote(f *testing.F) {
	f.Add([]byte("0123456789abcdef"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r rc.RemoteRegion
		if r.UnmarshalBinary(b) != nil {
			return
		}
		if again, err := r.MarshalBinary(); err != nil || string(again) != string(b) {
			t.Errorf("%x: got %v, which encodes as %x, %v", b, r, again, err)
		}
	})
}
