package hca

import (
	"context"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// What others use is not taken away.
func TestBusy(t *testing.T) {
	s := newStillPair(t).a
	pd, err := s.ctx.AllocPD()
	check(t, err)
	cq, err := s.ctx.CreateCQ(1)
	check(t, err)
	other, err := s.ctx.CreateCQ(1)
	check(t, err)
	mr, err := pd.AllocMR(1, 0)
	check(t, err)
	refused(t, pd.Close(), unix.EBUSY, "1 objects")
	ah, err := pd.CreateAH(context.Background(), s.route("10.0.0.2"))
	check(t, err)
	check(t, mr.Close())
	refused(t, pd.Close(), unix.EBUSY)
	qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: other})
	check(t, err)
	check(t, ah.Close())
	refused(t, pd.Close(), unix.EBUSY)
	refused(t, cq.Close(), unix.EBUSY, "close their QPs")
	refused(t, other.Close(), unix.EBUSY)
	check(t, qp.Close())
	for _, closer := range []interface{ Close() error }{cq, other, pd} {
		check(t, closer.Close())
		refused(t, closer.Close(), unix.EINVAL, "closed already")
	}
	for _, closer := range []interface{ Close() error }{mr, ah} {
		refused(t, closer.Close(), unix.EINVAL, "closed already")
	}
	_, err = pd.AllocMR(1, 0)
	refused(t, err, unix.EINVAL, "PD")
}

// Every limit is told as such, and a refusal leaves nothing behind.
func TestLimits(t *testing.T) {
	s := newStillPair(t).a
	rows := []struct {
		name   string
		used   int // by the station
		limit  int
		create func() (interface{ Close() error }, error)
	}{
		{"PD", 1, maxPD, func() (interface{ Close() error }, error) { return s.ctx.AllocPD() }},
		{"CQ", 1, maxCQ, func() (interface{ Close() error }, error) { return s.ctx.CreateCQ(1) }},
		{"MR", 1, maxMR, func() (interface{ Close() error }, error) { return s.pd.RegMR(make([]byte, 1), 0) }},
		{"QP", 1, maxQP, func() (interface{ Close() error }, error) {
			return s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
		}},
		{"AH", 0, maxAH, func() (interface{ Close() error }, error) {
			return s.pd.CreateAH(context.Background(), s.route("10.0.0.2"))
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var all []interface{ Close() error }
			for range row.limit - row.used {
				object, err := row.create()
				check(t, err)
				all = append(all, object)
			}
			users := s.device.pds.objects[0].users
			for range 3 {
				_, err := row.create()
				refused(t, err, unix.ENOMEM, "limit reached", row.name)
			}
			if now := s.device.pds.objects[0].users; now != users {
				t.Errorf("refusals left %d users of the PD", now-users)
			}
			for _, object := range all {
				check(t, object.Close())
			}
			again, err := row.create()
			check(t, err)
			check(t, again.Close())
		})
	}
	if n := len(s.device.byPlace); n != 1 || len(s.device.byDoorbell) != 1 {
		t.Errorf("%d queue pairs and %d doorbells are left", n, len(s.device.byDoorbell))
	}
}

// Arguments that cannot be are refused with what can.
func TestCreateRefuses(t *testing.T) {
	w := newStillPair(t)
	s := w.a
	qp := func(change func(a *verbs.QPInitAttr)) error {
		attr := verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq}
		change(&attr)
		_, err := s.pd.CreateQP(&attr)
		return err
	}
	mr := func(length int, access verbs.AccessFlags) error {
		_, err := s.pd.AllocMR(length, access)
		return err
	}
	cq := func(entries int) error {
		_, err := s.ctx.CreateCQ(entries)
		return err
	}
	_, noMemory := s.pd.RegMR(nil, 0)
	_, noCard := verbs.Open(nil)
	rows := []struct {
		name string
		err  error
		want error
		says string
	}{
		{"no card", noCard, unix.EINVAL, "no card"},
		{"CQ of 0", cq(0), unix.EINVAL, "1 to"},
		{"CQ too large", cq(maxCQE + 1), unix.EINVAL, "262144"},
		{"MR of 0", mr(0, 0), unix.EINVAL, "1 to"},
		{"MR of a negative length", mr(-1, 0), unix.EINVAL, "1 to"},
		{"MR too large", mr(maxMRSize+1, 0), unix.EINVAL, "1073741824"},
		{"MR of nothing", noMemory, unix.EINVAL, "1 to"},
		{"remote write", mr(1, 2), unix.EOPNOTSUPP, "access flags 0x2"},
		{"no CQ", qp(func(a *verbs.QPInitAttr) { a.RecvCQ = nil }), unix.EINVAL, "RecvCQ"},
		{"CQ of another device", qp(func(a *verbs.QPInitAttr) { a.SendCQ = w.b.cq }), unix.EINVAL, "another context"},
		{"connected service", qp(func(a *verbs.QPInitAttr) { a.Type = 2 }), unix.EOPNOTSUPP, "UD"},
		{"too many sends", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxSendWR = maxQPWR + 1 }), unix.EINVAL, "max_send_wr 16385, at most 16384"},
		{"too many receives", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxRecvWR = 1<<32 - 1 }), unix.EINVAL, "max_recv_wr"},
		{"too many SGEs", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxSendSGE = 17 }), unix.EINVAL, "max_send_sge 17, at most 16"},
		{"too many receive SGEs", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxRecvSGE = 17 }), unix.EINVAL, "max_recv_sge"},
		{"too much inline", qp(func(a *verbs.QPInitAttr) { a.Cap.MaxInlineData = maxInline + 1 }), unix.EINVAL, "max_inline_data 513, at most 512"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { refused(t, row.err, row.want, row.says) })
	}
	if users := s.device.pds.objects[0].users; users != 2 {
		t.Errorf("%d users of the PD, want the station's MR and QP", users)
	}
}

// A card serves one context: another is refused, and told so.
func TestSecondContext(t *testing.T) {
	s := newStillPair(t).a
	_, err := verbs.Open(s.device)
	refused(t, err, unix.EBUSY, "wire-a has a Context")
}

func TestQueryDevice(t *testing.T) {
	s := newStillPair(t).a
	attr, err := s.ctx.QueryDevice()
	check(t, err)
	want := verbs.DeviceAttr{
		Name: "wire-a", FirmwareVersion: attr.FirmwareVersion, NodeGUID: 0x0000_00ff_fe00_0001, MaxQP: 16384, MaxQPWR: 16384,
		MaxSGE: 16, MaxInline: 512, MaxCQ: 16384, MaxCQE: 1 << 18, MaxMR: 65536, MaxMRSize: 1 << 30, MaxPD: 16384, MaxAH: 1 << 17,
		MaxPKeys: 1, MaxMcastGrp: 16384, MaxMcastQPAttach: 16384, MaxTotalMcastQPAttach: 1 << 18, PhysicalPorts: 1, XDPMode: "none", AFXDPMode: "none",
	}
	if attr != want || attr.FirmwareVersion == "" {
		t.Errorf("%+v, want %+v", attr, want)
	}
	port, err := s.ctx.QueryPort(1)
	check(t, err)
	if port.State != verbs.PortActive || port.ActiveMTU.Bytes() != 4096 || port.MaxMsgSize != 4096 || port.GIDTableLen != 16 || port.PKeyTableLen != 1 || port.InterfaceMTU != 4176 {
		t.Errorf("port %+v", port)
	}
	if key, err := s.ctx.QueryPKey(1, 0); key != 0xFFFF || err != nil {
		t.Errorf("P_Key %v, %v", key, err)
	}
	_, noPort := s.ctx.QueryPort(2)
	_, noPKey := s.ctx.QueryPKey(1, 1)
	_, noGID := s.ctx.QueryGID(1, 3)
	_, negative := s.ctx.QueryGID(1, -1)
	refused(t, noPort, unix.EINVAL, "port 2")
	refused(t, noPKey, unix.EINVAL, "index 1")
	refused(t, noGID, unix.EADDRNOTAVAIL, "line 3")
	refused(t, negative, unix.EADDRNOTAVAIL)
}
