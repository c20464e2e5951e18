// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var limitTests = []rig.Test{{Name: "limits", Run: limits}}

// limits checks that each limit of QueryDevice can be reached, that one more object returns ErrLimit, and that the
// refused request leaks no object.
func limits(t *testing.T, w *rig.World) {
	s := w.A
	device, err := s.Ctx.QueryDevice()
	rig.Check(t, err)
	pd, err := s.Ctx.AllocPD()
	rig.Check(t, err)
	route := s.Route(w.B.End.IPv4)
	rows := []struct {
		name   string
		used   int // the number of objects that the station and this test have
		limit  int
		create func() (rig.Closer, error)
	}{
		{"PD", 2, device.MaxPD, func() (rig.Closer, error) { return s.Ctx.AllocPD() }},
		{"CQ", 1, device.MaxCQ, func() (rig.Closer, error) { return s.Ctx.CreateCQ(1) }},
		{"MR", 1, device.MaxMR, func() (rig.Closer, error) { return pd.AllocMR(1, 0) }},
		{"SRQ", 1, device.MaxSRQ, func() (rig.Closer, error) { return pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1}) }},
		{"QP", 1, device.MaxQP, func() (rig.Closer, error) {
			return pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.CQ, RecvCQ: s.CQ})
		}},
		{"AH", 0, device.MaxAH, func() (rig.Closer, error) { return pd.CreateAH(rig.Guard(t), route) }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { reach(t, row.name, row.limit-row.used, row.create) })
	}
	rig.Check(t, pd.Close()) // fails if a refused object still uses the PD
}

// reach creates objects up to the limit, checks that the next one is refused, and closes them.
func reach(t *testing.T, name string, most int, create func() (rig.Closer, error)) {
	var all []rig.Closer
	for range most {
		object, err := create()
		rig.Check(t, err)
		all = append(all, object)
	}
	for range 3 {
		_, err := create()
		rig.Refused(t, err, unix.ENOMEM, "limit reached", name)
	}
	for _, object := range all {
		rig.Check(t, object.Close())
	}
	again, err := create()
	rig.Check(t, err)
	rig.Check(t, again.Close())
}
