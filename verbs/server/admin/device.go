// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// NoCardError is the error that a device has no card now. It is a verbs.ErrDeviceFatal.
type NoCardError struct {
	Device string
	Cause  error
}

// Error implements error.
func (e *NoCardError) Error() string {
	return fmt.Sprintf("%v: %s has no card now: %v", verbs.ErrDeviceFatal, e.Device, e.Cause)
}

// Unwrap returns verbs.ErrDeviceFatal and the cause.
func (e *NoCardError) Unwrap() []error { return []error{verbs.ErrDeviceFatal, e.Cause} }

// QueryDevice describes a device. If it has no card now, or its card has failed or is being closed, the description
// gives the reason.
func (v *View) QueryDevice(r proto.LookDeviceRequest) (proto.DeviceView, error) {
	device, err := v.service.find(v.client.peer, r.Device)
	if err != nil {
		return proto.DeviceView{}, err
	}
	card, err := device.Card()
	if errors.Is(err, verbs.ErrDeviceFatal) {
		return proto.DeviceView{Why: reasonOf(err)}, nil
	}
	if err != nil {
		return proto.DeviceView{}, err
	}
	source, describes := card.(provider.Doer)
	if !describes {
		return proto.DeviceView{}, fmt.Errorf("%w: only programs that open %s can query it", verbs.ErrUnsupported, device.Name)
	}
	d, err := describe(source, int(r.From))
	if errors.Is(err, verbs.ErrDeviceFatal) || errors.Is(err, verbs.ErrClosed) {
		return proto.DeviceView{Why: reasonOf(err)}, nil
	}
	v.service.users.Lower(v.client.peer.Holder(), &d.Attr)
	return d, err
}

// describe returns the description of a device, with the entries of its GID table from an index on that fit a message.
func describe(source provider.Doer, from int) (v proto.DeviceView, err error) {
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

// reasonOf returns on one line why there is no card.
func reasonOf(err error) string {
	var none *NoCardError
	if errors.As(err, &none) {
		err = none.Cause
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
