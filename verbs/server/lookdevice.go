package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// NoCardError is that a Source has no card now. It is a verbs.ErrDeviceFatal.
type NoCardError struct {
	Device string
	Cause  error
}

// Error implements error.
func (e *NoCardError) Error() string {
	return fmt.Sprintf("%v: %s has no card now: %v", verbs.ErrDeviceFatal, e.Device, e.Cause)
}

// Unwrap gives verbs.ErrDeviceFatal and the cause.
func (e *NoCardError) Unwrap() []error { return []error{verbs.ErrDeviceFatal, e.Cause} }

// lookDevice says what a device is. That it has no card now, or that its card has failed or is being
// closed, is part of that.
func (c *connection) lookDevice(r proto.LookDeviceRequest) (proto.DeviceView, error) {
	device, err := c.find(r.Device)
	if err != nil {
		return proto.DeviceView{}, err
	}
	card, err := c.cardOf(device)
	if errors.Is(err, verbs.ErrDeviceFatal) {
		return proto.DeviceView{Why: reasonOf(err)}, nil
	}
	if err != nil {
		return proto.DeviceView{}, err
	}
	source, describes := card.(provider.Doer)
	if !describes {
		return proto.DeviceView{}, fmt.Errorf("%w: only programs that open %s can ask what it is", verbs.ErrUnsupported, device.Name())
	}
	view, err := view(source, int(r.From))
	if errors.Is(err, verbs.ErrDeviceFatal) || errors.Is(err, verbs.ErrClosed) {
		return proto.DeviceView{Why: reasonOf(err)}, nil
	}
	c.server.limit(c.peer.holder(), &view.Attr)
	return view, err
}

func view(source provider.Doer, from int) (v proto.DeviceView, err error) {
	if v.Attr, err = provider.Do(source, provider.QueryDevice, provider.None{}); err != nil {
		return v, err
	}
	if v.Port, err = provider.Do(source, provider.QueryPort, provider.QueryPortRequest{Port: 1}); err != nil {
		return v, err
	}
	table, err := provider.Do(source, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: 1})
	if err != nil {
		return v, err
	}
	v.Open = true
	v.GIDs = table.Entries[min(from, len(table.Entries)):]
	if v.More = len(v.GIDs) > proto.PageEntries; v.More {
		v.GIDs = v.GIDs[:proto.PageEntries]
	}
	return v, nil
}

// reasonOf is why there is no card, in a line.
func reasonOf(err error) string {
	var none *NoCardError
	if errors.As(err, &none) {
		err = none.Cause
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// limit lowers a device's limits to those of a user.
func (s *Server) limit(user holder, a *verbs.DeviceAttr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limits.of(user)
	for _, one := range []struct {
		most  *int
		limit int
	}{
		{&a.MaxPD, l.PDs}, {&a.MaxMR, l.MRs}, {&a.MaxCQ, l.CQs}, {&a.MaxQP, l.QPs}, {&a.MaxAH, l.AHs}, {&a.MaxSRQ, l.SRQs},
		{&a.MaxTotalMcastQPAttach, l.Attachments},
	} {
		if one.limit > 0 {
			*one.most = min(*one.most, one.limit)
		}
	}
}
