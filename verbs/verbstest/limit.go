package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var limitTests = []test{{name: "limits", run: limits}}

// Each limit that QueryDevice gives can be reached, beyond it is ErrLimit, and a refusal leaves
// nothing behind.
func limits(t *testing.T, w *world) {
	s := w.a
	device, err := s.ctx.QueryDevice()
	check(t, err)
	pd, err := s.ctx.AllocPD()
	check(t, err)
	rows := []struct {
		name   string
		used   int // by the station and this test
		limit  int
		create func() (closer, error)
	}{
		{"PD", 2, device.MaxPD, func() (closer, error) { return s.ctx.AllocPD() }},
		{"CQ", 1, device.MaxCQ, func() (closer, error) { return s.ctx.CreateCQ(1) }},
		{"MR", 1, device.MaxMR, func() (closer, error) { return pd.AllocMR(1, 0) }},
		{"SRQ", 1, device.MaxSRQ, func() (closer, error) { return pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1}) }},
		{"QP", 1, device.MaxQP, func() (closer, error) {
			return pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
		}},
		{"AH", 0, device.MaxAH, func() (closer, error) { return pd.CreateAH(guard(t), s.route(w.b.end.IPv4)) }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { reach(t, row.name, row.limit-row.used, row.create) })
	}
	check(t, pd.Close()) // what was refused does not use it
}

// reach makes as many objects as there can be, and frees them.
func reach(t *testing.T, name string, most int, create func() (closer, error)) {
	var all []closer
	for range most {
		object, err := create()
		check(t, err)
		all = append(all, object)
	}
	for range 3 {
		_, err := create()
		refused(t, err, unix.ENOMEM, "limit reached", name)
	}
	for _, object := range all {
		check(t, object.Close())
	}
	again, err := create()
	check(t, err)
	check(t, again.Close())
}
