// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// spoilt is the command that panics now, if any. All commands look there, in tests.
var spoilt atomic.Pointer[handler]

func init() {
	for _, table := range []map[uint16]handler{commands, inspections} {
		for code, good := range table {
			table[code] = handler{code, func(c *connection, m proto.Message) error {
				if bad := spoilt.Load(); bad != nil && bad.number == code {
					return bad.run(c, m)
				}
				return good.run(c, m)
			}}
		}
	}
}

// spoil has a command panic until the test ends.
func spoil(t *testing.T, h handler) {
	spoilt.Store(&h)
	t.Cleanup(func() { spoilt.Store(nil) })
}

// A panic in a command costs the session of the client that gave it: the command fails, the program's device
// has failed, and is closed as always. Other clients do not notice.
func TestPanicInACommand(t *testing.T) {
	for name, row := range map[string]struct {
		spoilt handler
		give   func(p *program) error
	}{
		"at once": {
			grants(proto.QueryPKey, func(*hca.Session, provider.QueryPKeyRequest) (provider.QueryPKeyGrant, error) { panic("a bug") }),
			func(p *program) error { _, err := p.ctx.QueryPKey(1, 0); return err },
		},
		"that frees": {
			grants(proto.DestroyQP, func(*hca.Session, provider.DestroyQPRequest) (proto.None, error) { panic("a bug") }),
			func(p *program) error { return p.qp.Close() },
		},
		"that waits": {
			waits(proto.CreateAH.Untyped, func(context.Context, *hca.Session, any, any) error { panic("a bug") }),
			func(p *program) error {
				_, err := p.pd.CreateAH(guard(p), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addressesB[0])}})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, anyone)
			bad, good, peer := newProgram(t, r.a.dial(t)), newProgram(t, r.a.dial(t)), newProgram(t, r.b.dial(t))
			ah := good.ah(addressesB[0])
			check(t, bad.qp.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{bad.mr.SGE(0, 100)}}}))
			t.Run("the command", func(t *testing.T) {
				spoil(t, row.spoilt)
				if err := row.give(bad); !isFatal(err) {
					t.Errorf("%v", err)
				}
			})
			var wcs [4]verbs.WC
			n, err := bad.cq.Wait(guard(t), wcs[:])
			if err != nil || n != 1 || wcs[0].ID != 5 || wcs[0].Status != verbs.WCWRFlushErr {
				t.Errorf("%d completions, %+v, %v", n, wcs[0], err)
			}
			event, err := bad.ctx.GetAsyncEvent(guard(t))
			for err == nil && event.Type != verbs.EventDeviceFatal {
				event, err = bad.ctx.GetAsyncEvent(guard(t))
			}
			check(t, err)
			if _, err := bad.ctx.AllocPD(); !isFatal(err) {
				t.Errorf("afterwards: %v", err)
			}
			good.exchange(ah, peer, "not affected")
			check(t, bad.client.Close())
			eventually(t, "the account is that of one client", func() bool { return r.a.uses(uint32(os.Geteuid())) == 1 })
			statistics, err := r.cards[0].Statistics()
			check(t, err)
			if statistics.Faults != 1 {
				t.Errorf("%d faults", statistics.Faults)
			}
		})
	}
}

func isFatal(err error) bool { return errors.Is(err, verbs.ErrDeviceFatal) }

// A panic before a device is open costs the connection.
func TestPanicBeforeASession(t *testing.T) {
	r := newRig(t, anyone)
	good := newProgram(t, r.a.dial(t))
	spoil(t, handler{proto.LookDevice.Number, func(*connection, proto.Message) error { panic("a bug") }})
	bad := r.a.raw(t)
	ask(bad, proto.Hello, &proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version, Newest: proto.Version})
	packet, err := proto.LookDevice.EncodeRequest(1, &proto.LookDeviceRequest{})
	check(t, err)
	check(t, bad.Send(packet))
	bad.hungUp()
	_, err = good.ctx.AllocPD()
	check(t, err)
	eventually(t, "the account is that of one client", func() bool { return r.a.uses(uint32(os.Geteuid())) == 1 })
}
