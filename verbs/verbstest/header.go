package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var headerTests = []rig.Test{{Name: "headers of received packets", Run: headers}}

// The 40 bytes in front of a message tell version and GIDs, as the GRH's methods do, over IPv4 and
// IPv6.
func headers(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	for i, from := range a.End.Addresses() {
		dest := b.End.Addresses()[i]
		b.Receive(0)
		a.Post(a.Send(1, a.AH(dest), b.QP))
		a.Expect(rig.OK(1))
		wc := b.Expect(rig.OK(0))[0]
		grh, _ := b.Received(wc)
		version := 6
		if dest.Is4() {
			version = 4
		}
		if got := verbs.GetRDMAHeaderVersion(grh); got != version {
			t.Errorf("to %v: version %d", dest, got)
		}
		sgid, dgid, err := verbs.GetGIDsFromRDMAHdr(grh, wc.NetworkHeader)
		rig.Check(t, err)
		if sgid != rig.GID(from) || dgid != rig.GID(dest) {
			t.Errorf("from %v to %v, want %v and %v", sgid, dgid, from, dest)
		}
		for name, refuse := range map[string]func() error{
			"no bytes":    func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(nil, wc.NetworkHeader); return err },
			"39 bytes":    func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(grh[:39], wc.NetworkHeader); return err },
			"type 0":      func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(grh, 0); return err },
			"RoCE v1":     func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(grh, 1); return err },
			"no such one": func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(grh, 255); return err },
		} {
			t.Run(name, func(t *testing.T) { rig.Refused(t, refuse(), unix.EINVAL) })
		}
	}
}
