package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var headerTests = []test{{name: "headers of received packets", run: headers}}

// The 40 bytes in front of a message tell version and GIDs, as the GRH's methods do, over IPv4 and
// IPv6.
func headers(t *testing.T, w *world) {
	a, b := w.a, w.b
	for i, from := range a.end.addresses() {
		dest := b.end.addresses()[i]
		b.receive(0)
		a.post(a.send(1, a.ah(dest), b.qp))
		a.expect(ok(1))
		wc := b.expect(ok(0))[0]
		grh, _ := b.received(wc)
		version := 6
		if dest.Is4() {
			version = 4
		}
		if got := verbs.GetRDMAHeaderVersion(grh); got != version {
			t.Errorf("to %v: version %d", dest, got)
		}
		sgid, dgid, err := verbs.GetGIDsFromRDMAHdr(grh, wc.NetworkHeader)
		check(t, err)
		if sgid != gid(from) || dgid != gid(dest) {
			t.Errorf("from %v to %v, want %v and %v", sgid, dgid, from, dest)
		}
		for name, refuse := range map[string]func() error{
			"no bytes":    func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(nil, wc.NetworkHeader); return err },
			"39 bytes":    func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(grh[:39], wc.NetworkHeader); return err },
			"type 0":      func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(grh, 0); return err },
			"RoCE v1":     func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(grh, 1); return err },
			"no such one": func() error { _, _, err := verbs.GetGIDsFromRDMAHdr(grh, 255); return err },
		} {
			t.Run(name, func(t *testing.T) { refused(t, refuse(), unix.EINVAL) })
		}
	}
}
